#include "sim/report/json/json.h"

#include <nlohmann/json.hpp>
#include <ostream>

namespace pipesim {

void write_json(std::ostream& out, std::span<const Answer> answers, const JsonOptions& options) {
  out << run_document(answers, options)
             .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
      << '\n';
}

}  // namespace pipesim
