// A JSON document that a person named, as a value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/report/html/inputs.h"

namespace pipesim {

// InputError where the text is no JSON object, or is nested more deeply than a document of ours;
// `expected` ends the message.
nlohmann::ordered_json parsed(const ReportInput& input, const std::string& expected);

bool is_number_or_null(const nlohmann::ordered_json& value);

// InputError at the document's beginning.
[[noreturn]] void refuse_document(const ReportInput& input, const std::string& what,
                                  const std::string& expected);

}  // namespace pipesim
