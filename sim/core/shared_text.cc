#include "sim/core/shared_text.h"

#include <utility>

namespace pipesim {

SharedLine::SharedLine(std::string line) : size_(line.size()) {
  if (size_ > 0) text_ = std::make_shared<const std::string>(std::move(line));
}

SharedLines::SharedLines(std::string text)
    : text_(std::make_shared<const std::string>(std::move(text))), begins_{0} {
  for (std::size_t at = 0; (at = text_->find('\n', at)) != std::string::npos;) {
    begins_.push_back(++at);
  }
  begins_.push_back(text_->size() + 1);
}

SharedLine SharedLines::operator[](std::size_t line) const {
  if (line >= size()) return {};
  const std::size_t begin = begins_[line];
  return {text_, begin, begins_[line + 1] - 1 - begin};
}

}  // namespace pipesim
