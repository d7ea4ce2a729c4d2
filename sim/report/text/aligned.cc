#include "sim/report/text/aligned.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipesim {

std::string aligned(const std::vector<Row>& rows, size_t left) {
  std::vector<size_t> width(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) text += "  ";
      text += c < left ? fmt::format("{:<{}}", row[c], width[c])
                       : fmt::format("{:>{}}", row[c], width[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

size_t widest_line(std::string_view text) {
  size_t widest = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    widest = std::max(widest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return widest;
}

}  // namespace pipesim
