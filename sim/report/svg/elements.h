// Elements of an SVG that a chart of lines is drawn from; coordinates in pixels, text escaped.
#pragma once

#include <string>

namespace pipesim {

// `anchor`: start, middle or end.
std::string svg_words(double x, double y, const std::string& text, const char* anchor = "start");
std::string svg_line(double x1, double y1, double x2, double y2, const char* stroke);

// A vertical line of a grid from `top` to `bottom`, dark at zero, named above.
std::string svg_grid_line(double x, double top, double bottom, bool zero, const std::string& name);

// A document on white with its title.
std::string svg_page(const std::string& title, double width, double height,
                     const std::string& elements);

}  // namespace pipesim
