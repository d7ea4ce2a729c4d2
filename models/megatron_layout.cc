// Megatron-LM's pipeline_model_parallel_layout, read and written.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "models/layout.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr size_t kLongest = 1 << 16;  // letters of a layout, repetitions written out

// Writes repetitions out: first of brackets, which do not nest, then of single letters.
class Unrolled {
 public:
  explicit Unrolled(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char letter = text_[at_++];
      if (letter == ',' || letter == ' ') continue;
      if (letter == '(') {
        bracket();
      } else {
        letter_or_run(letter, out_);
      }
    }
    return out_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw InfeasibleError(fmt::format("layout '{}': {}", text_, why));
  }

  // The number behind a '*' here, else 1.
  size_t times() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    size_t number = 0;
    const char* begin = text_.data() + at_ + 1;
    const char* end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || number == 0 || number > kLongest) {
      fail("a '*' needs a number of repetitions behind it");
    }
    at_ += 1 + (stop - begin);
    return number;
  }

  void repeat(const std::string& part, size_t number, std::string& out) {
    if (out.size() + part.size() * number > kLongest) fail("is too long");
    for (size_t i = 0; i < number; ++i) out += part;
  }

  void letter_or_run(char letter, std::string& out) {
    if (std::string_view("EtmL|").find(letter) == std::string_view::npos) {
      fail(
          fmt::format("'{}' is none of E (embedding), t (layer), m (MTP module), L (loss), '|', "
                      "'(...)*n', 'x*n'",
                      letter));
    }
    repeat(std::string(1, letter), times(), out);
  }

  void bracket() {
    std::string inside;
    while (true) {
      if (at_ == text_.size()) fail("a '(' without its ')'");
      const char letter = text_[at_++];
      if (letter == ')') break;
      if (letter == ',' || letter == ' ') continue;
      letter_or_run(letter, inside);
    }
    if (at_ == text_.size() || text_[at_] != '*') fail("a ')' needs '*' and a number behind it");
    repeat(inside, times(), out_);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

// Reads the letters of all stages in order.
class Reader {
 public:
  Reader(const Transformer& model, std::string_view text) : model_(model), text_(text) {}

  Layout run() {
    const std::string letters = Unrolled(text_).run();
    layout_.stages.emplace_back();
    for (const char letter : letters) take(letter);
    const auto& last = layout_.stages.back();
    if (!last.output) fail("the loss (L) must stand last, on the last stage");
    if (next_ != model_.num_layers) {
      fail(fmt::format("{} layers (t), but {} has {}", next_, model_.name, model_.num_layers));
    }
    if (modules_ != model_.mtp_layers) {
      fail(fmt::format("{} MTP modules (m), but {} has {}", modules_, model_.name,
                       model_.mtp_layers));
    }
    return layout_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw InfeasibleError(fmt::format("layout '{}': {}", text_, why));
  }

  void take(char letter) {
    StageLayers& stage = layout_.stages.back();
    if (letter == '|') {
      layout_.stages.push_back({.first = next_});
      return;
    }
    if (letter == 'E') {
      if (begun_ || layout_.stages.size() > 1) fail("the embedding (E) must stand first, once");
      begun_ = true;
      stage.embedding = true;
      return;
    }
    if (!begun_) fail("the embedding (E) must stand first, once");
    if (ended_) fail("the loss (L) must stand last, once");
    if (letter == 't') {
      if (modules_ > 0) fail("layers (t) must stand before MTP modules (m)");
      ++stage.layers;
      ++next_;
    } else if (letter == 'm') {
      if (modules_ > 0 && stage.mtp == 0) fail("all MTP modules (m) must stand on one stage");
      ++stage.mtp;
      ++modules_;
    } else {
      stage.output = true;
      ended_ = true;
    }
  }

  const Transformer& model_;
  std::string_view text_;
  Layout layout_;
  int next_ = 0;
  int modules_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

std::string run_of(char letter, int length) {
  if (length > 3) return fmt::format("{}*{}", letter, length);
  return std::string(length, letter);
}

std::string text_of(const StageLayers& stage) {
  return fmt::format("{}{}{}{}", stage.embedding ? "E" : "", run_of('t', stage.layers),
                     run_of('m', stage.mtp), stage.output ? "L" : "");
}

}  // namespace

Layout parse_megatron_layout(const Transformer& model, std::string_view text) {
  return Reader(model, text).run();
}

std::string to_megatron_layout(const Layout& layout) {
  std::string text;
  for (size_t i = 0; i + 1 < layout.stages.size();) {
    const std::string stage = text_of(layout.stages[i]);
    size_t next = i + 1;
    while (next + 1 < layout.stages.size() && text_of(layout.stages[next]) == stage) ++next;
    text += next == i + 1 ? fmt::format("{}|", stage) : fmt::format("({}|)*{}", stage, next - i);
    i = next;
  }
  return text + text_of(layout.stages.back());
}

}  // namespace pipesim
