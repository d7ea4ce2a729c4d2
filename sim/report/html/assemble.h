// One HTML page that needs nothing else, of a template, styles, scripts and one JSON object.
//
// The template has the marks {{title}}, {{style}}, {{data}} and {{script}}, and {{style-hash}} and
// {{script-hash}} in its content policy. The browser runs and applies only content with these
// hashes. The title and the object are data to the page, never markup. A template of live pages has
// {{ask}} and {{connect}} besides.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

// Names of files in the folder of the page's parts.
struct PageParts {
  std::string page;
  std::vector<std::string> styles;
  std::vector<std::string> scripts;  // each uses what stands before it
  // A live page asks the server that it comes from. `ask` is the markup that it asks with. The
  // scripts of `components` become the body of its function showReport(report).
  std::string ask = {};
  std::vector<std::string> components = {};
};

// InputError at `asked` when a part cannot be read.
std::string assembled_page(const std::string& folder, const PageParts& parts,
                           const std::string& title, const nlohmann::ordered_json& data,
                           const Location& asked);

}  // namespace pipesim
