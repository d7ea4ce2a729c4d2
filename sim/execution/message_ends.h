// The two ends of every message of a program, and the call of its device in which each stands. The
// rules of call_rules.h and comm_batches.h speak of these.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/pipeline/dependencies.h"
#include "sim/pipeline/program.h"

namespace pipesim {

using MessageId = std::uint32_t;
inline constexpr MessageId kNoMessage = std::numeric_limits<MessageId>::max();

// A forward or a backward of a program, with the messages that it waits for and makes.
struct Part {
  std::uint32_t at = 0;  // position; the two of an overlapped block share it
  bool forward = true;
  int chunk = 0;
  int index = 0;  // among the forwards, or the backwards, of its device
  MessageId in = kNoMessage;
  MessageId out = kNoMessage;
};

// Keeps a reference to the program. O(passes).
class Parts {
 public:
  explicit Parts(const Program& program);

  [[nodiscard]] const std::vector<Part>& of(int device) const { return parts_[device]; }
  // The index, on its device, of the pass that makes the message.
  [[nodiscard]] int index_of_sender(MessageId message) const { return index_[message]; }

 private:
  void add_device(int device);
  [[nodiscard]] Part part(int device, const Pass& pass, std::uint32_t at) const;
  [[nodiscard]] MessageId message(const StagePass& from, const StagePass& to,
                                  std::uint32_t unit) const;

  const Program& program_;
  const Placement& place_;
  MessageId units_;
  MessageId gradients_;  // the first id of a gradient
  std::vector<std::vector<Part>> parts_;
  std::vector<int> index_;
};

// An end of a message: in which call of the device, which stands before which position.
struct Post {
  std::uint32_t before = 0;
  std::uint32_t call = 0;  // of several at one position
  MessageId message = 0;
};

// The posts of one device.
class Posts {
 public:
  void add(MessageId message, std::uint32_t before, std::uint32_t call = 0) {
    if (message != kNoMessage) posts_.push_back({before, call, message});
  }
  // Call after call.
  [[nodiscard]] std::vector<Post> sorted() &&;

 private:
  std::vector<Post> posts_;
};

}  // namespace pipesim
