#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <thread>

#include "sim/core/error.h"
#include "sim/runtime/board.h"

namespace pipesim::runtime {
namespace {

// In place of a note's number.
constexpr NoteId kClock = std::numeric_limits<NoteId>::max();
constexpr NoteId kRecord = kClock - 1;
constexpr int kExchanges = 16;
constexpr double kPoll = 20e-6;  // seconds between looks for messages

struct Head {
  NoteId note = 0;
  double seconds = 0;
};

std::string letter(const Head& head, std::span<const std::byte> bytes = {}) {
  std::string text(sizeof head + bytes.size(), '\0');
  std::memcpy(text.data(), &head, sizeof head);
  if (!bytes.empty()) std::memcpy(text.data() + sizeof head, bytes.data(), bytes.size());
  return text;
}

Head head_of(const std::string& bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

// The next message with that number; others, of ranks that are ahead, are put aside.
Mpi::Message next_message(const Mpi& mpi, NoteId number, std::vector<std::string>& aside) {
  for (;;) {
    auto message = mpi.receive();
    if (!message) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kPoll));
    } else if (head_of(message->bytes).note == number) {
      return *std::move(message);
    } else {
      aside.push_back(std::move(message->bytes));
    }
  }
}

// What to add to the local clock for that of rank 0: of the exchange that took least, half of whose
// time an answer is taken to have been on its way. Ranks do so one after the other.
double offset_of(const Mpi& mpi, int rank, std::vector<std::string>& aside) {
  if (rank == 0) {
    for (int answered = 0; answered < (mpi.size() - 1) * kExchanges; ++answered) {
      const Mpi::Message asked = next_message(mpi, kClock, aside);
      mpi.send(asked.from, letter({kClock, monotonic_seconds()}));
    }
    return 0;
  }
  double least = std::numeric_limits<double>::infinity();
  double offset = 0;
  for (int i = 0; i < kExchanges; ++i) {
    const double asked = monotonic_seconds();
    mpi.send(0, letter({kClock, asked}));
    const double answer = head_of(next_message(mpi, kClock, aside).bytes).seconds;
    const double took = monotonic_seconds() - asked;
    if (took >= least) continue;
    least = took;
    offset = answer - (asked + took / 2);
  }
  return offset;
}

class MpiBoard final : public Board {
 public:
  MpiBoard(const Mpi& mpi, int rank, NoteId notes, double deadline)
      : mpi_(mpi), rank_(rank), end_(monotonic_seconds() + deadline), notes_(notes) {
    std::vector<std::string> ahead;
    offset_ = offset_of(mpi, rank, ahead);
    for (std::string& note : ahead) keep(std::move(note));
  }

  [[nodiscard]] double now() const override { return monotonic_seconds() + offset_; }

  void post(NoteId number, std::span<const int> to, double seconds,
            std::span<const std::byte> bytes) override {
    const std::string text = letter({number, seconds}, bytes);
    for (const int device : to) {
      if (device == rank_) {
        notes_[number] = text;
      } else {
        mpi_.send(device, text);
      }
    }
  }
  [[nodiscard]] bool posted(NoteId number) const override { return notes_[number].has_value(); }
  [[nodiscard]] double seconds(NoteId number) const override {
    return head_of(*notes_[number]).seconds;
  }
  [[nodiscard]] std::span<const std::byte> bytes(NoteId number) const override {
    return std::as_bytes(std::span(*notes_[number])).subspan(sizeof(Head));
  }
  void wait(double until) override {
    for (bool any = false; !any;) {
      while (auto message = mpi_.receive()) {
        keep(std::move(message->bytes));
        any = true;
      }
      if (monotonic_seconds() > end_) {
        throw InfeasibleError(fmt::format("rank {} stands before its item {}", rank_, item_));
      }
      const double left = until - now();
      if (any || left <= 0) return;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kPoll)));
    }
  }
  void stand_at(std::uint32_t item) override { item_ = item; }

 private:
  void keep(std::string note) {
    const NoteId number = head_of(note).note;
    notes_.at(number) = std::move(note);
  }

  const Mpi& mpi_;
  int rank_;
  double end_;  // of the local clock: when all waiting ends
  double offset_ = 0;
  std::uint32_t item_ = 0;
  std::vector<std::optional<std::string>> notes_;  // as they came
};

}  // namespace

std::unique_ptr<Board> make_mpi_board(const Mpi& mpi, int rank, NoteId notes, double deadline) {
  return std::make_unique<MpiBoard>(mpi, rank, notes, deadline);
}

std::vector<std::string> gather(const Mpi& mpi, int rank, const std::string& bytes) {
  const std::string letter_home = letter({kRecord, 0}, std::as_bytes(std::span(bytes)));
  if (rank != 0) {
    mpi.send(0, letter_home);
    return {};
  }
  std::vector<std::string> all(static_cast<std::size_t>(mpi.size()));
  all[0] = bytes;
  std::vector<std::string> ignored;  // notes that nobody waited for
  for (int i = 1; i < mpi.size(); ++i) {
    const Mpi::Message message = next_message(mpi, kRecord, ignored);
    all[static_cast<std::size_t>(message.from)] = message.bytes.substr(sizeof(Head));
  }
  return all;
}

}  // namespace pipesim::runtime
