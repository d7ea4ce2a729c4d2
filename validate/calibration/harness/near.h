// Keeps a thread on the processors next to a card, so that the memory it pins is next to it too.
#pragma once

#include <optional>
#include <sched.h>
#include <string>
#include <vector>

namespace pipesim::calibration {

// The processors of a kernel's list such as "0-3,8"; empty where it is none.
[[nodiscard]] std::vector<int> processors_of(const std::string& list);

// From its making to its end the calling thread runs next to the card on that PCI bus. Does nothing
// where the machine does not say what is next to it, or does not let it.
class NearCard {
 public:
  explicit NearCard(const std::string& bus);
  NearCard(const NearCard&) = delete;
  NearCard& operator=(const NearCard&) = delete;
  ~NearCard();

 private:
  std::optional<cpu_set_t> before_;
};

}  // namespace pipesim::calibration
