#include "sim/report/html/assemble.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/report/html/inputs.h"
#include "sim/report/html/sha256.h"
#include "sim/report/svg/xml.h"

namespace pipesim {
namespace {

// No string of the object can end the element that it stands in.
std::string without_markup(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

using Marks = std::vector<std::pair<std::string, std::string>>;

// Marks are looked for in the template only, never in what replaces them.
std::string replaced(const std::string& text, const Marks& marks) {
  std::string page;
  size_t at = 0;
  for (size_t mark; (mark = text.find("{{", at)) != std::string::npos;) {
    const size_t end = text.find("}}", mark);
    const std::string name = text.substr(mark + 2, end - mark - 2);
    const auto found = std::ranges::find(marks, name, &Marks::value_type::first);
    if (found == marks.end()) throw LogicError("the page has an unknown mark: " + name);
    page.append(text, at, mark - at).append(found->second);
    at = end + 2;
  }
  return page.append(text, at);
}

}  // namespace

std::string assembled_page(const std::string& folder, const PageParts& parts,
                           const std::string& title, const nlohmann::ordered_json& data,
                           const Location& asked) {
  const auto part = [&](const std::string& name) {
    return read_report_input(folder + "/" + name, asked).text;
  };
  std::string styles;
  for (const std::string& name : parts.styles) styles += part(name);
  std::string scripts;
  for (const std::string& name : parts.scripts) scripts += part(name);
  if (!parts.components.empty()) {
    scripts += "function showReport(report) {\n";
    for (const std::string& name : parts.components) scripts += part(name);
    scripts += "}\n";
  }
  const std::string object =
      data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  Marks marks{{"title", xml_escaped(title)},
              {"style", styles},
              {"data", without_markup(object)},
              {"script", scripts},
              {"ask", parts.ask.empty() ? "" : part(parts.ask)},
              {"connect", parts.ask.empty() ? "'none'" : "'self'"}};
  const std::string text = part(parts.page);
  for (const char* element : {"style", "script"}) {
    const std::string begin = fmt::format("<{}>", element);
    const size_t inside = text.find(begin) + begin.size();
    const size_t end = text.find(fmt::format("</{}>", element), inside);
    const std::string content = replaced(text.substr(inside, end - inside), marks);
    marks.emplace_back(fmt::format("{}-hash", element), "sha256-" + sha256_base64(content));
  }
  return replaced(text, marks);
}

}  // namespace pipesim
