#include "sim/report/svg/svg.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/drawing/drawing.h"
#include "sim/report/svg/gallery.h"
#include "sim/report/svg/xml.h"
#include "tests/case/cases.h"

namespace pipesim::svg_test {
namespace {

// An XML reader that knows elements, attributes in double quotes, text and five entities: what the
// writer uses. Anything else is a fault.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<Element> children;
  std::string text;

  [[nodiscard]] double number(const std::string& attribute) const {
    return std::stod(attributes.at(attribute));
  }
};

class XmlReader {
 public:
  explicit XmlReader(const std::string& text) : text_(text) {}

  Element document() {
    Element root = element();
    while (at_ < text_.size() && text_[at_] == '\n') ++at_;
    if (at_ != text_.size()) fail("text behind the root");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::to_string(at_) + ": " + text_.substr(at_, 40));
  }
  void expect(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) fail("expected " + token);
    at_ += token.size();
  }
  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(text_[at_]) != 0 || text_[at_] == '-')) ++at_;
    if (at_ == begin) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }
  std::string characters(char end) {
    std::string read;
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '<' || text_[at_] == '>') fail("bare markup");
      if (static_cast<unsigned char>(text_[at_]) < 0x20 && text_[at_] != '\n') fail("control");
      if (text_[at_] != '&') {
        read += text_[at_++];
        continue;
      }
      bool known = false;
      for (const auto& [entity, character] : std::map<std::string, char>{
               {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}) {
        if (text_.compare(at_, entity.size(), entity) != 0) continue;
        at_ += entity.size();
        read += character;
        known = true;
        break;
      }
      if (!known) fail("unknown entity");
    }
    return read;
  }
  Element element() {
    Element element;
    expect("<");
    element.name = name();
    while (text_[at_] == ' ') {
      ++at_;
      const std::string attribute = name();
      expect("=\"");
      if (!element.attributes.emplace(attribute, characters('"')).second) fail("twice");
      expect("\"");
    }
    if (text_[at_] == '/') {
      expect("/>");
      return element;
    }
    expect(">");
    for (;;) {
      element.text += characters('<');
      if (text_.compare(at_, 2, "</") == 0) break;
      element.children.push_back(this->element());
    }
    expect("</" + element.name + ">");
    return element;
  }

  const std::string& text_;
  size_t at_ = 0;
};

template <class Visit>
void for_each(const Element& element, const Visit& visit) {
  visit(element);
  for (const Element& child : element.children) for_each(child, visit);
}

std::string svg_of(const Answer& answer, const std::string& name) {
  std::ostringstream out;
  write_svg(out, answer.made, answer.result, {.name = name});
  return out.str();
}

// A box of a pass: what it says it is, and where it stands.
struct Box {
  std::string pass;
  double x, y, width, height;
};

std::vector<Box> boxes_of(const Element& root) {
  std::vector<Box> boxes;
  for_each(root, [&boxes](const Element& each) {
    if (each.name != "rect" || each.children.empty()) return;
    EXPECT_EQ(each.children.front().name, "title");
    const std::string title = each.children.front().text;
    boxes.push_back({title.substr(0, title.find(' ')), each.number("x"), each.number("y"),
                     each.number("width"), each.number("height")});
  });
  return boxes;
}

// Every pass of the program once, an overlapped block as its two passes.
std::multiset<std::string> passes_of(const Program& program) {
  std::multiset<std::string> passes;
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) {
      if (pass.kind == PassKind::kFB) {
        passes.insert(program.text(device, program.pair(pass).forward));
        passes.insert(program.text(device, program.pair(pass).backward));
      } else {
        passes.insert(program.text(device, pass));
      }
    }
  }
  return passes;
}

void expect_all_passes(const Answer& answer, const std::string& name) {
  const std::string text = svg_of(answer, name);
  const auto boxes = boxes_of(XmlReader(text).document());
  std::multiset<std::string> drawn;
  for (const Box& box : boxes) drawn.insert(box.pass);
  // Where iterations run into each other, one is drawn, its microbatches numbered within it.
  EXPECT_EQ(drawn, passes_of(*make_program(answer.made))) << name;
  EXPECT_EQ(text, svg_of(answer, name)) << name;
}

Answer simulated(const std::string& schedule, int devices, int microbatches,
                 const std::string& rest = "") {
  const Scenario scenario = read_scenario(YamlSource(
      "s.yaml", "schedule: " + schedule +
                    "\nparallel: {pipeline_model_parallel_size: " + std::to_string(devices) +
                    "}\nbatch: {num_microbatches: " + std::to_string(microbatches) +
                    "}\ncost: {kind: given, forward: 10 ms, backward_input: 12 ms, "
                    "backward_weight: 7 ms, transfer: 1 ms}\n" +
                    rest));
  return pipesim::answer(prepare_first(scenario));
}

Answer with_overlapped_blocks() {
  Scenario scenario;
  ScheduleChoice choice;
  choice.name = "blocks";
  choice.program = std::make_shared<const Program>(
      read_torch_csv("s.csv", "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"));
  scenario.parallel.pipeline = 2;
  scenario.batch.microbatches = 3;
  scenario.cost.forward = scenario.cost.backward_input =
      scenario.cost.backward_weight = {Seconds(1)};
  scenario.cost.overlapped = {Seconds(2.5)};
  return pipesim::answer(case_of(scenario, choice));
}

TEST(Svg, HasEveryPassOfEveryScheduleOnceInWellFormedXml) {
  size_t drawn = 0;
  for (const Schedule* schedule : schedules()) {
    const GalleryEntry entry = gallery_entry(*schedule);
    if (!entry.answer) continue;
    expect_all_passes(*entry.answer, schedule->name);
    ++drawn;
  }
  EXPECT_GE(drawn, 9U);
}

TEST(Svg, BoxesStandWhereTheirSecondsAre) {
  const Answer answer = simulated("zb-h1", 4, 8);
  const auto boxes = boxes_of(XmlReader(svg_of(answer, "zb-h1")).document());
  std::map<std::string, Box> by_name;
  for (const Box& box : boxes) by_name[box.pass] = box;
  const Drawing drawing(answer.result);
  const Box& first = by_name.at("0F0");
  const double scale = first.width / 0.010;  // pixels per second
  size_t compared = 0;
  for (size_t device = 0; device < 4; ++device) {
    for (const TaskId task : drawing.passes(device)) {
      const Box& box = by_name.at(answer.result.graph->name(task));
      EXPECT_NEAR(box.x, first.x + scale * drawing.start(task), 0.05) << box.pass;
      EXPECT_NEAR(box.width, scale * (drawing.end(task) - drawing.start(task)), 0.05) << box.pass;
      EXPECT_EQ(box.y, by_name.at(std::to_string(device) + "F0").y) << box.pass;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4U * 8 * 3);
}

TEST(Svg, AnOverlappedBlockIsTwoHalvesOfOneBox) {
  const Answer answer = with_overlapped_blocks();
  expect_all_passes(answer, "blocks");
  std::map<std::string, Box> by_name;
  for (const Box& box : boxes_of(XmlReader(svg_of(answer, "blocks")).document())) {
    by_name[box.pass] = box;
  }
  const Box& forward = by_name.at("0F2");
  const Box& backward = by_name.at("0BW0");
  EXPECT_EQ(forward.x, backward.x);
  EXPECT_EQ(forward.width, backward.width);
  EXPECT_EQ(forward.y + forward.height, backward.y);
  EXPECT_EQ(2 * forward.height, by_name.at("0F0").height);
  EXPECT_NEAR(forward.width, 2.5 * by_name.at("0F0").width, 0.05);
}

TEST(Svg, TheTitleSaysShapeBubbleAndPeak) {
  const std::string text = svg_of(
      simulated("zb-h2", 4, 8, "memory: {kind: given, activation: 1 GiB, weight_stash: 1 GiB}\n"),
      "zb-h2");
  const Element root = XmlReader(text).document();
  ASSERT_EQ(root.children.front().name, "title");
  const std::string& title = root.children.front().text;
  EXPECT_TRUE(title.starts_with("zb-h2: p = 4, m = 8, bubble ")) << title;
  EXPECT_TRUE(title.ends_with("%, peak activation 7.00 GiB = 7 microbatches")) << title;
  EXPECT_NE(svg_of(simulated("1f1b", 2, 2), "1f1b").find("activations not given"),
            std::string::npos);
}

TEST(Svg, AnyNameIsText) {
  const Answer answer = simulated("1f1b", 2, 2);
  const std::string name = "a<b>&\"c'\x01\xff\xc3\xa4</title>";
  const Element root = XmlReader(svg_of(answer, name)).document();
  EXPECT_TRUE(root.children.front().text.starts_with(
      "a<b>&\"c'\xEF\xBF\xBD\xEF\xBF\xBD\xc3\xa4</title>: p = 2"))
      << root.children.front().text;
  EXPECT_EQ(xml_escaped("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(xml_escaped("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(xml_escaped("\xe2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut off
}

TEST(Svg, BeyondTheLimitARowIsPixelsAndSaysSo) {
  const Answer answer = simulated("1f1b", 8, 1300);  // 20800 passes
  ASSERT_GT(Drawing(answer.result).size(), kMostBoxes);
  const std::string text = svg_of(answer, "1f1b");
  const Element root = XmlReader(text).document();
  EXPECT_TRUE(boxes_of(root).empty());
  EXPECT_NE(text.find("20800 passes are more than 20000"), std::string::npos);
  EXPECT_LT(text.size(), 8 * kPixels * 12);
  // Strokes of a row do not overlap and cover no more than the row.
  std::map<std::string, double> covered;  // by height
  for_each(root, [&covered](const Element& each) {
    if (each.name != "path") return;
    std::istringstream strokes(each.attributes.at("d"));
    char move = 0;
    double x = 0, length = 0;
    std::string y;
    while (strokes >> move >> x && std::getline(strokes >> std::ws, y, 'h') && strokes >> length) {
      EXPECT_EQ(move, 'M');
      covered[y] += length;
    }
  });
  EXPECT_EQ(covered.size(), 8U);
  for (const auto& [y, pixels] : covered) {
    EXPECT_GT(pixels, 0.9 * kPixels) << y;
    EXPECT_LE(pixels, kPixels) << y;
  }
}

}  // namespace
}  // namespace pipesim::svg_test
