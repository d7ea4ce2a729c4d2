// Where the processes of a pipeline write notes for each other: a time, and bytes.
//
// A note is written once, by one device, and read by those that it is for. All times are seconds of
// one clock, on several machines too. Local processes share memory; ranks of MPI send messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/mpi/mpi.h"
#include "sim/runtime/script.h"

namespace pipesim::runtime {

// A device's report of its execution, made at its end.
struct DeviceRecord {
  struct Span {
    double start = 0;
    double end = 0;
  };
  std::array<std::vector<Span>, kLanes> items;  // by lane, as scripted
  // A message that it received: when it left, and when it arrived.
  struct Received {
    MessageId message = 0;
    Span span;
  };
  std::vector<Received> messages;
  double wait_overhead = 0;  // by how much a timed wait comes late: the median
  std::uint64_t digest = 0;  // of what it computed
  double peak_bytes = 0;     // that its work had allocated
  std::vector<float> gradients;
};
std::string to_bytes(const DeviceRecord& record);
DeviceRecord record_from(std::span<const char> bytes);

// This machine's clock, by which local processes wait.
double monotonic_seconds();

class Board {
 public:
  virtual ~Board() = default;

  [[nodiscard]] virtual double now() const = 0;
  virtual void post(NoteId note, std::span<const int> to, double seconds,
                    std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual bool posted(NoteId note) const = 0;
  // Require a posted note.
  [[nodiscard]] virtual double seconds(NoteId note) const = 0;
  [[nodiscard]] virtual std::span<const std::byte> bytes(NoteId note) const = 0;
  // Returns at that time, or before it when something may have been posted.
  virtual void wait(double until) = 0;
  // For messages about a device that hangs.
  virtual void stand_at(std::uint32_t item) = 0;
};

// Memory that processes share, made before they are forked.
class SharedBoards {
 public:
  // Notes hold up to so many bytes, records up to `record_bytes`.
  SharedBoards(int devices, NoteId notes, std::size_t note_bytes, std::size_t record_bytes);
  SharedBoards(const SharedBoards&) = delete;
  SharedBoards& operator=(const SharedBoards&) = delete;
  ~SharedBoards();

  // A device's board, for its process.
  [[nodiscard]] std::unique_ptr<Board> board(int device);
  // At its end the process leaves its record, or why it failed.
  void leave(int device, const std::string& bytes, bool failed);
  // For the process that forked it.
  [[nodiscard]] std::span<const char> left(int device) const;
  [[nodiscard]] bool failed(int device) const;
  [[nodiscard]] std::uint32_t stands_at(int device) const;

 private:
  friend class SharedBoard;
  struct Header;
  struct Note;
  [[nodiscard]] Header& header(int device) const;
  [[nodiscard]] Note& note(NoteId number) const;
  [[nodiscard]] std::byte* payload(NoteId number) const;
  [[nodiscard]] char* record(int device) const;

  std::size_t devices_, notes_, note_bytes_, record_bytes_;
  std::size_t size_ = 0;
  std::byte* memory_ = nullptr;
};

// The ranks of MPI, one a device, through one execution after the other.
class MpiPeers {
 public:
  // Sets the clock by that of rank 0. Every rank makes one, at the same time.
  MpiPeers(const Mpi& mpi, int rank);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return mpi_.size(); }

  // InfeasibleError on rank 0 where another rank has `read` something else: a text of what it has
  // read. Every rank calls it, before the first execution.
  void check_same(const std::string& read);
  // The board of the next execution. Waits end with InfeasibleError after `deadline` seconds.
  std::unique_ptr<Board> next_board(NoteId notes, double deadline);
  // Gathers on rank 0 what every rank has to say at its end: one string a rank, elsewhere nothing.
  std::vector<std::string> gather(const std::string& bytes);

 private:
  friend class MpiBoard;
  struct Head;
  // Executions count from 1; those who are ahead send what is kept for later.
  std::optional<Mpi::Message> receive();
  Mpi::Message wait_for(NoteId number);
  void send(int to, NoteId number, double seconds, std::span<const std::byte> bytes);
  void set_clock();

  const Mpi& mpi_;
  int rank_;
  std::uint32_t execution_ = 0;
  double offset_ = 0;
  std::vector<Mpi::Message> later_;    // of executions to come
  std::vector<Mpi::Message> records_;  // on rank 0, of this one; before the first, what was read
};

}  // namespace pipesim::runtime
