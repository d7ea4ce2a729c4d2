// Which messages each device exchanges at which point of its program, when transfers hold the
// compute stream: the call groups of training frameworks.
//
// A call sends and receives a batch of messages. A device issues its batches in order, each before
// its pass, and waits for a whole batch before it goes on. A message is a rendezvous: it leaves
// when both its batches, the sender's and the receiver's, have been issued. Every message that the
// program needs (a result for a stage of another device) is in exactly one batch at either end. The
// sender's comes after the pass, the receiver's before the pass that waits for it. The rules below
// follow the frameworks: which messages go together, and how early or late.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/execution/message_ends.h"
#include "sim/pipeline/call_groups.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The result of a pass on its way to another device.
struct Message {
  bool forward = true;  // else a gradient
  int from = 0;         // virtual stages
  int to = 0;
  std::uint32_t unit = 0;
};

struct CommBatch {
  std::uint32_t before = 0;  // position in the device's program; its length: after the last pass
  std::uint32_t first = 0;   // of its messages, see CommBatches::messages
  std::uint32_t count = 0;
};

class CommBatches {
 public:
  // O(passes log passes). Throws InfeasibleError when the program cannot be executed, or ignores
  // dependencies (WrapAround::kFirstOfGroup).
  CommBatches(const Program& program, CallGroups calls);

  [[nodiscard]] std::span<const CommBatch> batches(int device) const {
    return devices_[device].batches;
  }
  [[nodiscard]] std::span<const MessageId> messages(int device, const CommBatch& batch) const {
    return std::span(devices_[device].messages).subspan(batch.first, batch.count);
  }
  [[nodiscard]] Message message(MessageId id) const;
  [[nodiscard]] size_t message_ids() const { return stages_ * units_ * 2; }  // not all are used

 private:
  struct Device {
    std::vector<CommBatch> batches;
    std::vector<MessageId> messages;
  };

  Placement place_;
  size_t stages_;
  size_t units_;
  std::vector<Device> devices_;
};

// Throws InfeasibleError for devices that hold each other. Device d has run `position[d]` passes
// and issued `issued[d]` batches, the last of them with messages whose other end was not `met`.
[[noreturn]] void report_held(const Program& program, const CommBatches& batches,
                              std::span<const std::uint32_t> position,
                              std::span<const std::uint32_t> issued,
                              std::span<const std::uint8_t> met);

// Visits passes and messages in an order in which each comes after all that it waits for. A device
// runs on until it is held, then the next one that can go on does, first come first served.
// Throws InfeasibleError when devices hold each other for good, naming what each waits for.
//
// The visitor's functions:
//   - run(device, pass);
//   - send(message): both its batches have been issued;
//   - release(device): the messages of its open batch have all been sent, and it goes on when they
//     have arrived.
template <class Visitor>
void walk_batches(const Program& program, const CommBatches& batches, Visitor& visitor);

// ---- implementation ----

namespace walk_detail {

template <class Visitor>
class BatchWalker {
 public:
  BatchWalker(const Program& program, const CommBatches& batches, Visitor& visitor)
      : program_(program),
        batches_(batches),
        visitor_(visitor),
        position_(program.placement().devices(), 0),
        issued_(position_.size(), 0),
        open_(position_.size(), 0),
        queued_(position_.size(), 1),
        ends_(batches.message_ids(), 0) {}

  void run() {
    std::vector<int> queue;  // a ring: at most one entry per device
    for (int d = 0; d < devices(); ++d) queue.push_back(d);
    size_t head = 0;
    for (size_t length = queue.size(); length > 0;) {
      const int device = queue[head % queue.size()];
      ++head;
      --length;
      queued_[device] = 0;
      woken_.clear();
      advance(device);
      for (const int woken : woken_) queue[(head + length++) % queue.size()] = woken;
    }
    for (int d = 0; d < devices(); ++d) {
      if (!done(d)) report_held(program_, batches_, position_, issued_, ends_);
    }
  }

 private:
  [[nodiscard]] int devices() const { return program_.placement().devices(); }
  [[nodiscard]] bool done(int device) const {
    return open_[device] == 0 && issued_[device] == batches_.batches(device).size() &&
           position_[device] == program_.passes(device).size();
  }

  void advance(int device) {
    const auto passes = program_.passes(device);
    const auto batches = batches_.batches(device);
    std::uint32_t& at = position_[device];
    std::uint32_t& issued = issued_[device];
    while (open_[device] == 0) {
      if (issued < batches.size() && batches[issued].before == at) {
        issue(device, batches[issued++]);
      } else if (at < passes.size()) {
        visitor_.run(device, passes[at++]);
      } else {
        break;
      }
    }
  }

  void issue(int device, const CommBatch& batch) {
    open_[device] = batch.count;
    for (const MessageId id : batches_.messages(device, batch)) {
      if (++ends_[id] < 2) continue;
      const Message message = batches_.message(id);
      visitor_.send(message);
      arrive(program_.placement().device(message.from), device);
      arrive(program_.placement().device(message.to), device);
    }
  }

  // One message of the device's open batch is on its way.
  void arrive(int device, int running) {
    if (--open_[device] > 0) return;
    visitor_.release(device);
    if (device == running || queued_[device] != 0) return;
    queued_[device] = 1;
    woken_.push_back(device);
  }

  const Program& program_;
  const CommBatches& batches_;
  Visitor& visitor_;
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> issued_;
  std::vector<std::uint32_t> open_;  // messages of the open batch that were not sent yet
  std::vector<std::uint8_t> queued_;
  std::vector<std::uint8_t> ends_;  // by message: batches issued that hold it
  std::vector<int> woken_;
};

}  // namespace walk_detail

template <class Visitor>
void walk_batches(const Program& program, const CommBatches& batches, Visitor& visitor) {
  walk_detail::BatchWalker<Visitor>(program, batches, visitor).run();
}

}  // namespace pipesim
