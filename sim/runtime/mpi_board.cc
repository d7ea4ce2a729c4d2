#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <thread>
#include <utility>

#include "sim/core/error.h"
#include "sim/runtime/board.h"

namespace pipesim::runtime {

struct MpiPeers::Head {
  std::uint32_t execution = 0;
  NoteId note = 0;
  double seconds = 0;

  static Head of(const std::string& bytes) {
    Head head;
    std::memcpy(&head, bytes.data(), sizeof head);
    return head;
  }
};

namespace {

// In place of a note's number.
constexpr NoteId kClock = std::numeric_limits<NoteId>::max();
constexpr NoteId kRecord = kClock - 1;
constexpr int kExchanges = 16;
constexpr double kPoll = 20e-6;  // seconds between looks for messages

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

class MpiBoard final : public Board {
 public:
  MpiBoard(MpiPeers& peers, NoteId notes, double deadline)
      : peers_(peers), end_(monotonic_seconds() + deadline), notes_(notes) {}

  [[nodiscard]] double now() const override { return monotonic_seconds() + peers_.offset_; }

  void post(NoteId number, std::span<const int> to, double seconds,
            std::span<const std::byte> bytes) override {
    for (const int device : to) {
      if (device == peers_.rank_) {
        notes_[number] = {seconds, {bytes.begin(), bytes.end()}};
      } else {
        peers_.send(device, number, seconds, bytes);
      }
    }
  }
  [[nodiscard]] bool posted(NoteId number) const override { return notes_[number].has_value(); }
  [[nodiscard]] double seconds(NoteId number) const override { return notes_[number]->first; }
  [[nodiscard]] std::span<const std::byte> bytes(NoteId number) const override {
    return notes_[number]->second;
  }
  void wait(double until) override {
    for (bool any = false;;) {
      while (const auto message = peers_.receive()) {
        const auto head = MpiPeers::Head::of(message->bytes);
        const auto content = std::as_bytes(std::span(message->bytes)).subspan(sizeof head);
        if (head.note >= notes_.size()) {
          throw InfeasibleError(fmt::format(
              "rank {} runs another schedule: the same files must stand on all machines",
              message->from));
        }
        notes_[head.note] = {head.seconds, {content.begin(), content.end()}};
        any = true;
      }
      const double left = until - now();
      if (any || left <= 0) return;
      if (monotonic_seconds() > end_) {
        throw InfeasibleError(fmt::format("not done in time: it stands before its item {}", item_));
      }
      rest(std::min(left, kPoll));
    }
  }
  void stand_at(std::uint32_t item) override { item_ = item; }

 private:
  MpiPeers& peers_;
  double end_;  // of the local clock: when all waiting ends
  std::uint32_t item_ = 0;
  std::vector<std::optional<std::pair<double, std::vector<std::byte>>>> notes_;
};

MpiPeers::MpiPeers(const Mpi& mpi, int rank) : mpi_(mpi), rank_(rank) { set_clock(); }

void MpiPeers::send(int to, NoteId number, double seconds, std::span<const std::byte> bytes) {
  const Head head{execution_, number, seconds};
  std::string text(sizeof head + bytes.size(), '\0');
  std::memcpy(text.data(), &head, sizeof head);
  if (!bytes.empty()) std::memcpy(text.data() + sizeof head, bytes.data(), bytes.size());
  mpi_.send(to, text);
}

// Notes of the running execution; everything else is put where it is looked for.
std::optional<Mpi::Message> MpiPeers::receive() {
  const auto kept = std::ranges::find_if(later_, [&](const Mpi::Message& message) {
    return Head::of(message.bytes).execution == execution_;
  });
  if (kept != later_.end()) {
    Mpi::Message message = std::move(*kept);
    later_.erase(kept);
    if (Head::of(message.bytes).note != kRecord) return message;
    records_.push_back(std::move(message));
  }
  while (auto message = mpi_.receive()) {
    const Head head = Head::of(message->bytes);
    if (head.execution > execution_) {
      later_.push_back(*std::move(message));
    } else if (head.note == kRecord) {
      records_.push_back(*std::move(message));
    } else if (head.execution == execution_) {
      return message;
    }
  }
  return std::nullopt;
}

Mpi::Message MpiPeers::wait_for(NoteId number) {
  for (;; rest(kPoll)) {
    while (auto message = receive()) {
      if (Head::of(message->bytes).note == number) return *std::move(message);
    }
  }
}

// The shortest of several exchanges counts; its answer is taken to have been on its way for half of
// it.
void MpiPeers::set_clock() {
  if (rank_ == 0) {
    for (int answered = 0; answered < (size() - 1) * kExchanges; ++answered) {
      const Mpi::Message asked = wait_for(kClock);
      send(asked.from, kClock, monotonic_seconds(), {});
    }
    return;
  }
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kExchanges; ++i) {
    const double asked = monotonic_seconds();
    send(0, kClock, asked, {});
    const double answer = Head::of(wait_for(kClock).bytes).seconds;
    const double took = monotonic_seconds() - asked;
    if (took >= least) continue;
    least = took;
    offset_ = answer - (asked + took / 2);
  }
}

std::unique_ptr<Board> MpiPeers::next_board(NoteId notes, double deadline) {
  ++execution_;
  return std::make_unique<MpiBoard>(*this, notes, deadline);
}

void MpiPeers::check_same(const std::string& read) {
  const std::vector<std::string> all = gather(read);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == read) continue;
    throw InfeasibleError(
        fmt::format("rank {} has read something else than rank 0, or is another build of pipesim: "
                    "the same must stand on all machines",
                    rank));
  }
}

std::vector<std::string> MpiPeers::gather(const std::string& bytes) {
  if (rank_ != 0) {
    send(0, kRecord, 0, std::as_bytes(std::span(bytes)));
    return {};
  }
  while (records_.size() + 1 < static_cast<std::size_t>(size())) {
    if (!receive()) rest(kPoll);  // notes that nobody waits for
  }
  std::vector<std::string> all(static_cast<std::size_t>(size()));
  all[0] = bytes;
  for (const Mpi::Message& message : records_) {
    all[static_cast<std::size_t>(message.from)] = message.bytes.substr(sizeof(Head));
  }
  records_.clear();
  return all;
}

}  // namespace pipesim::runtime
