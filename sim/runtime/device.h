// One device of a pipeline as a process of its own: it executes its script against the clock and
// the notes of the others.
#pragma once

#include <span>
#include <vector>

#include "sim/pipeline/program.h"
#include "sim/runtime/board.h"
#include "sim/runtime/script.h"

namespace pipesim::runtime {

// A device's work in its items, and the bytes that it sends.
class Work {
 public:
  virtual ~Work() = default;
  // Seconds that pass from here on count as the pass's, and so do those of the item that are left.
  virtual void run(const Pass& pass, const Board& board) = 0;
  // At its start, and when its time has passed.
  virtual void start_copy(const Copy& copy, bool out) = 0;
  virtual void end_copy(const Copy& copy, bool out) = 0;
  // The bytes of a message or part that this device has made.
  [[nodiscard]] virtual std::span<const std::byte> bytes(NoteId note) = 0;
  // Puts what it found into the record.
  virtual void close(DeviceRecord& record) = 0;
};

// Tells the others that the device is ready, waits for them, and executes the script. Returns when
// the device is done; it waits for ever where the script deadlocks.
DeviceRecord execute(const Program& program, const DeviceScript& script, int device, Work& work,
                     Board& board);

}  // namespace pipesim::runtime
