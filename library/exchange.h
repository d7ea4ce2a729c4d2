// `pipesim import`, asked by values.
#pragma once

#include <pipesim/exchange.h>
#include <string>

namespace pipesim {

// InputError as `imported` (app/imported.h), located in the command that the options make.
api::Imported imported_file(const std::string& path, const api::ImportOptions& options);

}  // namespace pipesim
