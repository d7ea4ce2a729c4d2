// One device's part of a program: lanes of items, and the notes by which devices learn of each
// other.
//
// Like a training runtime, a script knows its device's own list of passes and the inputs of every
// pass (sim/pipeline/dependencies.h). It also knows its framework's calls
// (sim/execution/comm_batches.h) and the copies over its host link. It knows no order between
// devices. Processes find that order when they execute their scripts, or they deadlock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/execution/comm_batches.h"
#include "sim/graph/coupling.h"
#include "sim/pipeline/program.h"

namespace pipesim::runtime {

using NoteId = std::uint32_t;

// Numbers of the notes of one program. A note is written once, by one device, with a time and
// bytes.
class NoteIds {
 public:
  explicit NoteIds(const Program& program);

  [[nodiscard]] NoteId data(MessageId message) const { return message; }  // it leaves
  // The receiver's call has been issued (rendezvous).
  [[nodiscard]] NoteId ready(MessageId message) const { return messages_ + message; }
  // The device has done its part for a collective of a sharded vocabulary.
  [[nodiscard]] NoteId part(Barrier barrier, std::uint32_t unit, int device) const;
  // Interlaced: the device has reached this vocabulary pass of the unit.
  [[nodiscard]] NoteId meeting(PassKind kind, std::uint32_t unit, int device) const;
  // The copy, by its number in its direction of its link, has ended.
  [[nodiscard]] NoteId copied(std::size_t link, bool out, std::size_t number) const;
  [[nodiscard]] NoteId at_start(int device) const { return starts_ + static_cast<NoteId>(device); }
  [[nodiscard]] NoteId count() const { return starts_ + devices_; }

  [[nodiscard]] MessageId message(PassKind kind, int vs, std::uint32_t unit) const {
    const NoteId row = kind == PassKind::kF ? 0 : stages_;
    return (row + static_cast<NoteId>(vs)) * units_ + unit;
  }

 private:
  NoteId stages_, units_, devices_;
  NoteId messages_;            // ids of messages
  NoteId parts_;               // the first
  std::vector<NoteId> links_;  // the first of each link's, copies out before copies back
  std::vector<NoteId> outs_;   // copies out of each link
  NoteId starts_;
};

// Seconds of everything that a script waits or works for.
struct Durations {
  std::vector<std::vector<double>> passes;                 // by device and position
  std::vector<double> messages;                            // by MessageId
  std::vector<EnumArray<Barrier, double>> barriers;        // by unit
  std::vector<std::array<std::vector<double>, 2>> copies;  // by link; out, back; as planned
};

enum class Lane : std::uint8_t { kCompute, kMessages, kCopyOut, kCopyIn };
inline constexpr std::size_t kLanes = 4;

// An item starts so many seconds after a note, or after an item of another lane of its device.
struct Wait {
  enum class For : std::uint8_t { kNote, kItem };
  For what = For::kNote;
  std::uint32_t id = 0;  // note; or number in its lane
  Lane lane = Lane::kCompute;
  double seconds = 0;
};

struct Posting {
  NoteId note = 0;
  std::vector<int> to;  // devices
};

// An end of a message in a call.
struct CallEnd {
  MessageId message = 0;
  bool sends = false;
  int peer = 0;  // device
  double seconds = 0;
};

struct Item {
  enum class Kind : std::uint8_t {
    kPass,
    kCall,  // issues its messages and ends when all have been exchanged
    kMeet,  // tells all, then waits for all
    kHold,  // waits
    kCopy,
  };
  Kind kind = Kind::kPass;
  std::uint32_t position = 0;  // of a pass; of a copy: its number in its direction of its link
  std::vector<Wait> waits = {};
  double seconds = 0;
  std::vector<Posting> first = {};  // posted when the item comes to stand first in its lane
  std::vector<Posting> posts = {};  // posted at its end
  std::vector<CallEnd> call = {};
  Copy copy = {};  // of a copy
};

struct DeviceScript {
  std::array<std::vector<Item>, kLanes> lanes;
  std::vector<std::uint32_t> item_of_position;  // of the compute lane
};

// How devices hand over messages.
enum class Semantics : std::uint8_t {
  kAsynchronous,  // a result leaves when its pass has ended; nobody waits for a send
  kCalls,         // in calls of the compute stream, Coupling::blocking
  kTorch,  // one after the other on a stream of their own, in the order of PyTorch's lowering
};
constexpr std::string_view to_text(Semantics semantics) {
  constexpr std::string_view kNames[] = {"asynchronous", "calls", "torch"};
  return kNames[static_cast<std::size_t>(semantics)];
}

// PyTorch's where asked for, or else those of the calls that there are.
Semantics semantics_of(const Coupling& coupling, bool torch);

// By device. InfeasibleError for a program that does not wait for all its messages, or whose calls
// deadlock. With kTorch also for one that PyTorch does not run. O(passes x devices).
std::vector<DeviceScript> scripts_of(const Program& program, const Durations& durations,
                                     Semantics semantics, const Coupling& coupling);

}  // namespace pipesim::runtime
