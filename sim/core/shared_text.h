// Lines of a text that is held once: whoever keeps a line keeps the text, and copies none of it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipesim {

class SharedLine {
 public:
  SharedLine() = default;
  // A line of its own.
  SharedLine(std::string line);  // NOLINT(google-explicit-constructor): a text is a line
  SharedLine(const char* line)
      : SharedLine(std::string(line)) {}  // NOLINT(google-explicit-constructor)
  SharedLine(std::shared_ptr<const std::string> text, std::size_t begin, std::size_t size)
      : text_(std::move(text)), begin_(begin), size_(size) {}

  [[nodiscard]] std::string_view view() const {
    return text_ == nullptr ? std::string_view() : std::string_view(*text_).substr(begin_, size_);
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::shared_ptr<const std::string> text_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

class SharedLines {
 public:
  SharedLines() : SharedLines(std::string()) {}
  // Lines end at '\n' each; behind the last one is another, which may be empty.
  explicit SharedLines(std::string text);

  [[nodiscard]] std::size_t size() const { return begins_.size() - 1; }
  // Counts from 0; an empty one beyond the last.
  [[nodiscard]] SharedLine operator[](std::size_t line) const;

 private:
  std::shared_ptr<const std::string> text_;
  std::vector<std::size_t> begins_;  // of each line, and of one behind the last
};

}  // namespace pipesim
