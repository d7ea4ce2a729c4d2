#include "sim/report/svg/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <ostream>

#include "sim/core/text.h"
#include "sim/report/drawing/drawing.h"
#include "sim/report/drawing/palette.h"
#include "sim/report/metrics/row.h"
#include "sim/report/svg/xml.h"

namespace pipesim {
namespace {

// Pixels.
constexpr double kLeft = 74, kRight = 16, kTop = 44, kRow = 24, kGap = 5;
constexpr double kSwatch = 18, kLegendLine = 22;
constexpr double kLeastWidth = 520, kMostWidth = 1600, kBoxWidth = 20;
// Widths of an average letter, and of a digit, generously.
constexpr double kLetter = 6.2, kTitleLetter = 8.2, kDigit = 6.2;

// To a hundredth of a pixel, without trailing zeros.
std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double width_of(const std::string& text, double letter) {
  return letter * static_cast<double>(text.size());
}

struct TimeUnit {
  const char* name;
  double seconds;
};

// The unit in which the largest time is at least 1.
TimeUnit unit_of(double seconds) {
  constexpr std::array kUnits{TimeUnit{"s", 1}, TimeUnit{"ms", 1e-3}, TimeUnit{"us", 1e-6}};
  for (const TimeUnit& unit : kUnits) {
    if (seconds >= unit.seconds) return unit;
  }
  return {"ns", 1e-9};
}

// The least of 1, 2, 5, 10, 20, ... that is no less than `least`.
double round_step(double least) {
  double step = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * step >= least * (1 - 1e-9)) return factor * step;
  }
  return 10 * step;
}

// So that the shortest pass has room for its number, as long as the page does not get too wide.
SvgAxis axis_of(const Drawing& drawing) {
  if (drawing.size() > kMostBoxes) return {drawing.seconds(), static_cast<double>(kPixels)};
  double shortest = drawing.seconds();
  for (size_t device = 0; device < drawing.devices(); ++device) {
    for (const TaskId pass : drawing.passes(device)) {
      const double seconds = drawing.end(pass) - drawing.start(pass);
      if (seconds > 0) shortest = std::min(shortest, seconds);
    }
  }
  return {drawing.seconds(), std::round(std::clamp(kBoxWidth * drawing.seconds() / shortest,
                                                   kLeastWidth, kMostWidth))};
}

class SvgWriter {
 public:
  SvgWriter(std::ostream& out, const Case& made, const Result& result, const SvgOptions& options)
      : out_(out),
        made_(made),
        result_(result),
        graph_(*result.graph),
        program_(*result.program),
        options_(options),
        drawing_(result),
        boxes_(drawing_.size() <= kMostBoxes),
        axis_(options.axis.value_or(axis_of(drawing_))) {}

  SvgSize write() {
    const std::string title = options_.name + ": " + headline(made_, result_, options_.bytes);
    const double width =
        std::max(kLeft + axis_.pixels, kRight + width_of(title, kTitleLetter)) + kRight;
    const double rows = kTop + static_cast<double>(drawing_.devices()) * (kRow + kGap);
    const double height = rows + 34 + kLegendLine * legend_lines(width) + kRight;
    fmt::print(out_,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"Helvetica,Arial,sans-serif\" "
               "font-size=\"11\">\n<title>{2}</title>\n",
               px(width), px(height), xml_escaped(title));
    write_style();
    fmt::print(out_, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    fmt::print(out_, "<text class=\"title\" x=\"{}\" y=\"20\">{}</text>\n", px(kRight),
               xml_escaped(title));
    if (!note().empty()) {
      fmt::print(out_, "<text x=\"{}\" y=\"36\">{}</text>\n", px(kRight), note());
    }
    for (size_t device = 0; device < drawing_.devices(); ++device) write_device(device);
    write_axis(rows + 4);
    write_legend(rows + 38, width);
    fmt::print(out_, "</svg>\n");
    return {width, height};
  }

 private:
  [[nodiscard]] double x_of(double seconds) const {
    return kLeft + seconds / axis_.seconds * axis_.pixels;
  }
  [[nodiscard]] static double y_of(size_t device) {
    return kTop + static_cast<double>(device) * (kRow + kGap);
  }

  // Notes that apply to this drawing in particular.
  [[nodiscard]] std::string note() const {
    std::string text;
    const auto add = [&text](const std::string& more) {
      text += (text.empty() ? "" : "; ") + more;
    };
    if (const auto& ensemble = result_.report.ensemble) {
      add(fmt::format("rates are the mean of {} runs, the drawing is the first", ensemble->runs));
    }
    if (!boxes_) {
      add(
          fmt::format("{} passes are more than {}: a pixel has the colour of the pass that covers "
                      "most of it",
                      drawing_.size(), kMostBoxes));
    } else if (program_.shape().splits > 1) {
      add(fmt::format("numbers: microbatch x {} + sequence split", program_.shape().splits));
    }
    return text;
  }

  // Every kind and chunk that is drawn has one class, for boxes and for the numbers on them.
  [[nodiscard]] std::string class_of(PassKind kind, int chunk) const {
    return fmt::format("{}{}{}", options_.prefix, to_text(kind), chunk);
  }

  void write_style() {
    fmt::print(out_,
               "<style>.page{{fill:#fff}}.row{{fill:#fff;stroke:#999}}.title{{font-size:14px;"
               "font-weight:bold}}.n{{text-anchor:middle}}.h{{font-size:9px}}.e{{text-anchor:end}}"
               "rect[class]{{stroke-width:.6}}.b{{stroke:#fff}}path{{fill:none;stroke-width:{}}}",
               px(kRow));
    for (const PassKind kind : legend()) {
      for (int chunk = 0; chunk < program_.shape().chunks; ++chunk) {
        const Colour fill = fill_of(kind, chunk, program_.shape().chunks);
        fmt::print(out_, "rect.{0}{{fill:{1}}}text.{0}{{fill:{2}}}path.{0}{{stroke:{1}}}",
                   class_of(kind, chunk), css(fill), css(text_on(fill)));
      }
    }
    fmt::print(out_, "</style>\n");
  }

  // The kinds that are drawn, in their own order.
  [[nodiscard]] std::vector<PassKind> legend() const {
    std::array<bool, kPassKinds> there{};
    for (const TaskClass& of : graph_.classes()) {
      if (of.kind != TaskKind::kCompute) continue;
      there[static_cast<size_t>(of.pass == PassKind::kFB ? PassKind::kF : of.pass)] = true;
    }
    for (const OverlappedPair& pair : program_.pairs()) {
      there[static_cast<size_t>(pair.backward.kind)] = true;
    }
    std::vector<PassKind> kinds;
    for (size_t kind = 0; kind < there.size(); ++kind) {
      if (there[kind]) kinds.push_back(static_cast<PassKind>(kind));
    }
    return kinds;
  }

  void write_device(size_t device) {
    const double y = y_of(device);
    fmt::print(out_, "<g>\n<text class=\"e\" x=\"{}\" y=\"{}\">device {}</text>\n", px(kLeft - 8),
               px(y + 16), device);
    fmt::print(out_, "<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
               px(kLeft), px(y), px(axis_.pixels), px(kRow));
    if (boxes_) {
      for (const TaskId task : drawing_.passes(device)) write_pass(static_cast<int>(device), task);
    } else {
      write_pixels(device);
    }
    if (device < options_.marked.size()) write_mark(device, options_.marked[device]);
    fmt::print(out_, "</g>\n");
  }

  void write_pass(int device, TaskId task) {
    const double y = y_of(static_cast<size_t>(device));
    const Pass pass = graph_.pass(task);
    if (pass.kind != PassKind::kFB) {
      write_box(device, task, pass, y, kRow, "");
      return;
    }
    const OverlappedPair& pair = program_.pair(pass);
    const std::string both = " in " + program_.text(device, pass);
    write_box(device, task, pair.forward, y, kRow / 2, both);
    write_box(device, task, pair.backward, y + kRow / 2, kRow / 2, both);
  }

  void write_box(int device, TaskId task, const Pass& pass, double y, double height,
                 const std::string& remark) {
    const std::string from = px(x_of(drawing_.start(task)));
    // The difference of the rounded ends: neighbours meet, whatever is rounded.
    const double width = std::stod(px(x_of(drawing_.end(task)))) - std::stod(from);
    const std::string look = class_of(pass.kind, pass.chunk);
    fmt::print(out_,
               "<rect class=\"b {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}{}"
               "</title></rect>\n",
               look, from, px(y), px(width), px(height), program_.text(device, pass),
               xml_escaped(remark));
    const std::string number = fmt::format("{}", pass.microbatch);
    if (static_cast<double>(number.size()) * kDigit + 1 > width) return;
    const double middle = (x_of(drawing_.start(task)) + x_of(drawing_.end(task))) / 2;
    fmt::print(out_, "<text class=\"n{} {}\" x=\"{}\" y=\"{}\">{}</text>\n",
               height < kRow ? " h" : "", look, px(middle), px(y + height / 2 + height / 6),
               number);
  }

  // Beyond the last pass there is nothing to frame.
  void write_mark(size_t device, std::optional<size_t> position) {
    const auto& passes = drawing_.passes(device);
    if (!position || *position >= passes.size()) return;
    const double from = x_of(drawing_.start(passes[*position]));
    const double width = std::max(2.0, x_of(drawing_.end(passes[*position])) - from);
    fmt::print(out_,
               "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
               "stroke=\"#000\" stroke-width=\"3\"/>\n",
               px(from), px(y_of(device)), px(width), px(kRow));
  }

  // The class of a pixel; a half of an overlapped block is too thin to be seen: its forward.
  [[nodiscard]] std::string pixel_class(TaskId owner) const {
    if (owner == kNoTask) return "";
    Pass pass = graph_.pass(owner);
    if (pass.kind == PassKind::kFB) pass = program_.pair(pass).forward;
    return class_of(pass.kind, pass.chunk);
  }

  // One path per kind and chunk, a stroke as high as the row for every run of pixels.
  void write_pixels(size_t device) {
    const double pixels = axis_.pixels * drawing_.seconds() / axis_.seconds;
    const auto owners =
        drawing_.columns(device, static_cast<size_t>(std::max(1.0, std::round(pixels))));
    std::vector<std::string> looks;
    for (const TaskId owner : owners) looks.push_back(pixel_class(owner));
    for (const PassKind kind : legend()) {
      for (int chunk = 0; chunk < program_.shape().chunks; ++chunk) {
        const std::string look = class_of(kind, chunk);
        std::string strokes;
        for (size_t c = 0; c < looks.size();) {
          const size_t begin = c++;
          if (looks[begin] != look) continue;
          while (c < looks.size() && looks[c] == look) ++c;
          strokes += fmt::format("M{} {}h{}", px(kLeft + static_cast<double>(begin)),
                                 px(y_of(device) + kRow / 2), c - begin);
        }
        if (strokes.empty()) continue;
        fmt::print(out_, "<path class=\"{}\" d=\"{}\"/>\n", look, strokes);
      }
    }
  }

  void write_axis(double y) {
    const TimeUnit unit = unit_of(axis_.seconds);
    const double total = axis_.seconds / unit.seconds;
    const double step = round_step(total / std::max(1.0, axis_.pixels / 60));
    fmt::print(out_, "<g stroke=\"#000\"><line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
               px(kLeft), px(y), px(kLeft + axis_.pixels), px(y));
    const int ticks = static_cast<int>(total / step * (1 + 1e-12));
    for (int i = 0; i <= ticks; ++i) {
      const double x = x_of(i * step * unit.seconds);
      fmt::print(out_, "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/>\n", px(x), px(y),
                 px(y + 4));
    }
    fmt::print(out_, "</g>\n");
    for (int i = 0; i <= ticks; ++i) {
      fmt::print(out_, "<text class=\"n\" x=\"{}\" y=\"{}\">{:g}</text>\n",
                 px(x_of(i * step * unit.seconds)), px(y + 16), i * step);
    }
    fmt::print(out_, "<text class=\"e\" x=\"{}\" y=\"{}\">time, {}</text>\n", px(kLeft - 8),
               px(y + 16), unit.name);
  }

  // Where the legend's entries stand: one per kind, a last one about shades.
  struct Entry {
    double x;
    int line;
    std::string text;
  };
  [[nodiscard]] std::vector<Entry> legend_entries(double page) const {
    std::vector<Entry> entries;
    double x = kLeft;
    int line = 0;
    const auto add = [&](double swatches, const std::string& text) {
      const double width = swatches + width_of(text, kLetter) + 20;
      if (x > kLeft && x + width > page) {
        x = kLeft;
        ++line;
      }
      entries.push_back({x, line, text});
      x += width;
    };
    for (const PassKind kind : legend()) {
      add(last_chunk() > 0 ? 2 * kSwatch : kSwatch,
          fmt::format("{} {}", to_text(kind), meaning_of(kind)));
    }
    if (last_chunk() > 0) add(0, fmt::format("light: chunk 0, dark: chunk {}", last_chunk()));
    return entries;
  }
  [[nodiscard]] int legend_lines(double page) const { return legend_entries(page).back().line + 1; }
  [[nodiscard]] int last_chunk() const { return program_.shape().chunks - 1; }

  // A swatch per kind, of its first and last chunk.
  void write_legend(double y, double page) {
    const auto entries = legend_entries(page);
    const auto kinds = legend();
    for (size_t i = 0; i < entries.size(); ++i) {
      const double top = y + kLegendLine * entries[i].line;
      double x = entries[i].x;
      if (i < kinds.size()) {
        write_swatch(x, top, kinds[i], 0);
        if (last_chunk() > 0) write_swatch(x += kSwatch, top, kinds[i], last_chunk());
        x += kSwatch;
      }
      fmt::print(out_, "<text x=\"{}\" y=\"{}\">{}</text>\n", px(x + 4), px(top + 12),
                 entries[i].text);
    }
  }

  void write_swatch(double x, double y, PassKind kind, int chunk) {
    fmt::print(out_, "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"16\" height=\"16\"/>\n",
               class_of(kind, chunk), px(x), px(y));
  }

  std::ostream& out_;
  const Case& made_;
  const Result& result_;
  const TaskGraph& graph_;
  const Program& program_;
  const SvgOptions& options_;
  Drawing drawing_;
  bool boxes_;
  SvgAxis axis_;
};

}  // namespace

std::string headline(const Case& made, const Result& result, bool bytes) {
  const Shape& shape = made.problem.shape;  // of an iteration, of which a program may hold several
  std::string text = fmt::format("p = {}, m = {}", shape.devices, shape.microbatches);
  if (shape.chunks > 1) text += fmt::format(", v = {}", shape.chunks);
  if (shape.splits > 1) text += fmt::format(", {} sequence splits", shape.splits);
  const Report& report = result.report;
  text += fmt::format(", bubble{} {}", report.unequal_work() ? " of busiest" : "",
                      metric_text(metric_named("bubble_rate_busiest"), report.bubble_rate_busiest));
  const Bytes one = made.problem.device_activation();
  if (one <= Bytes(0)) return text + ", activations not given";
  const std::string count = fmt::format("{:.4g}", report.peak_activation / one);
  text += ", peak activation ";
  if (bytes) text += human(report.peak_activation) + " = ";
  return text + count + (count == "1" ? " microbatch" : " microbatches");
}

SvgAxis axis_of(const Result& result) { return axis_of(Drawing(result)); }

SvgSize write_svg(std::ostream& out, const Case& made, const Result& result,
                  const SvgOptions& options) {
  return SvgWriter(out, made, result, options).write();
}

}  // namespace pipesim
