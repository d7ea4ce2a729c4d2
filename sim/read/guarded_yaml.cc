#include "sim/read/guarded_yaml.h"

#include <cctype>
#include <fmt/format.h>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>
#include <yaml-cpp/eventhandler.h>

#include "sim/core/text.h"

namespace pipesim {
namespace {

constexpr size_t kMostNodes = 2'000'000;
constexpr size_t kMostLevels = 200;

struct Refused {
  YAML::Mark mark;
  std::string why;
};

// Counts what a document would become, as its events come.
class Counting : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { leaf(mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    if (has_control_character(value)) {
      throw Refused{mark, "a control character, which a terminal would obey"};
    }
    leaf(mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = sizes_.find(anchor);
    if (known == sizes_.end()) throw Refused{mark, "an alias to what it stands in"};
    count(mark, known->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YAML::anchor_t anchor;
    size_t before;  // nodes when it began
  };

  void count(const YAML::Mark& mark, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ <= kMostNodes) return;
    throw Refused{mark, fmt::format("more than {} values, aliases written out", kMostNodes)};
  }
  void leaf(const YAML::Mark& mark, YAML::anchor_t anchor) {
    count(mark, 1);
    if (anchor != YAML::NullAnchor) sizes_[anchor] = 1;
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    open_.push_back({anchor, nodes_});
    count(mark, 1);
    if (open_.size() <= kMostLevels) return;
    throw Refused{mark, fmt::format("lists and maps more than {} deep", kMostLevels)};
  }
  void close() {
    const auto [anchor, before] = open_.back();
    open_.pop_back();
    if (anchor != YAML::NullAnchor) sizes_[anchor] = nodes_ - before;
  }

  size_t nodes_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, size_t> sizes_;  // of what is complete
};

bool is_marker(std::string_view line, std::string_view marker) {
  return line.starts_with(marker) &&
         (line.size() == 3 || std::isspace(static_cast<unsigned char>(line[3])) != 0);
}

// Refuses the parts that yaml-cpp's Load drops in silence: directives, and all text behind the end
// of the first document.
void check_one_document(const std::string& text) {
  bool begun = false;
  bool ended = false;
  int number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); ++number) {
    YAML::Mark mark;
    mark.line = number;
    mark.column = 0;
    mark.pos = 0;
    if (line.starts_with('%')) {
      throw Refused{mark, "a line that begins with % would be a directive, which YAML leaves out"};
    }
    const size_t first = line.find_first_not_of(" \t\r");
    const bool begins = is_marker(line, "---");
    const bool ends = is_marker(line, "...");
    const bool empty = first == std::string::npos || line[first] == '#';
    if ((begins && begun) || (ended && !empty && !ends)) {
      throw Refused{mark, "expected one document, not several"};
    }
    begun = begun || (!empty && !ends);
    ended = ended || ends;
  }
}

// The reason where a tab indents the line of the mark, which YAML's messages do not name.
std::string tab_before(const std::string& text, const YAML::Mark& mark) {
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= mark.line && std::getline(lines, line);) ++i;
  const std::string indent = line.substr(0, line.find_first_not_of(" \t"));
  return indent.find('\t') == std::string::npos ? "" : "; YAML indents with spaces, not with a tab";
}

}  // namespace

YAML::Node load_yaml(const std::string& text,
                     const std::function<Location(const YAML::Mark&)>& locate) {
  try {
    check_one_document(text);
    Counting counting;
    std::istringstream stream(text);
    YAML::Parser(stream).HandleNextDocument(counting);
    return YAML::Load(text);
  } catch (const Refused& refused) {
    throw InputError(locate(refused.mark), refused.why);
  } catch (const YAML::Exception& error) {
    throw InputError(locate(error.mark),
                     "not valid YAML: " + error.msg + tab_before(text, error.mark));
  }
}

}  // namespace pipesim
