#include "sim/report/svg/elements.h"

#include <fmt/format.h>

#include "sim/report/svg/xml.h"

namespace pipesim {

std::string svg_words(double x, double y, const std::string& text, const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     xml_escaped(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* stroke) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, stroke);
}

std::string svg_grid_line(double x, double top, double bottom, bool zero, const std::string& name) {
  return svg_line(x, top, x, bottom, zero ? "#555555" : "#dddddd") +
         svg_words(x, top - 6, name, "middle");
}

std::string svg_page(const std::string& title, double width, double height,
                     const std::string& elements) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width, height, xml_escaped(title), elements);
}

}  // namespace pipesim
