#include "sim/runtime/device.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pipesim::runtime {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kTrials = 25;          // waits that are timed before all begin
constexpr double kTrial = 2e-3;      // seconds each
constexpr double kHeadStart = 5e-3;  // after the last has come

class Device {
 public:
  Device(const Program& program, const DeviceScript& script, int device, Work& work, Board& board)
      : program_(program),
        ids_(program),
        script_(script),
        device_(device),
        work_(work),
        board_(board) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      record_.items[lane].resize(script.lanes[lane].size());
    }
  }

  DeviceRecord run() {
    record_.wait_overhead = timed_waits();
    meet_all();
    while (!done()) {
      double next = kNever;
      bool moved = false;
      for (std::size_t lane = 0; lane < kLanes; ++lane) moved |= advance(lane, next);
      if (!moved) board_.wait(next);
    }
    work_.close(record_);
    return std::move(record_);
  }

 private:
  struct State {
    std::size_t next = 0;  // item
    bool stands = false;   // its first notes are posted
    bool runs = false;
    double stood = 0;               // since when it stands
    double until = 0;               // when it ends
    std::vector<double> call = {};  // when each message of a call is there; never: not known yet
  };

  // By how much a wait of this board comes late, at the median.
  double timed_waits() {
    std::vector<double> late;
    for (int trial = 0; trial < kTrials; ++trial) {
      const double until = board_.now() + kTrial;
      while (board_.now() < until) board_.wait(until);
      late.push_back(board_.now() - until);
    }
    const auto middle = late.begin() + kTrials / 2;
    std::ranges::nth_element(late, middle);
    return *middle;
  }

  void meet_all() {
    std::vector<int> all(static_cast<std::size_t>(program_.placement().devices()));
    std::iota(all.begin(), all.end(), 0);
    board_.post(ids_.at_start(device_), all, board_.now(), {});
    double begin = 0;
    for (const int other : all) {
      const NoteId note = ids_.at_start(other);
      while (!board_.posted(note)) board_.wait(kNever);
      begin = std::max(begin, board_.seconds(note) + kHeadStart);
    }
    while (board_.now() < begin) board_.wait(begin);
  }

  [[nodiscard]] bool done() const {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (state_[lane].next < script_.lanes[lane].size()) return false;
    }
    return true;
  }

  // Starts or ends the lane's next item where its time has come. Otherwise `next` is no later than
  // when it will, as far as that is known.
  bool advance(std::size_t lane, double& next) {
    State& state = state_[lane];
    if (state.next == script_.lanes[lane].size()) return false;
    const Item& item = script_.lanes[lane][state.next];
    if (state.runs) return end_if_due(lane, item, next);
    if (!state.stands) stand(lane, item);
    const double due = state.stands ? due_of(lane, item) : latest(item.waits);
    if (!state.stands && board_.now() >= due) return true;
    if (board_.now() < due) {
      next = std::min(next, due);
      return false;
    }
    start(lane, item);
    return true;
  }

  // A call of a stream of its own is issued only once what it sends has been made.
  void stand(std::size_t lane, const Item& item) {
    State& state = state_[lane];
    if (lane == static_cast<std::size_t>(Lane::kCompute)) {
      board_.stand_at(static_cast<std::uint32_t>(state.next));
    }
    if (item.kind == Item::Kind::kCall && latest(item.waits) > board_.now()) return;
    state.stands = true;
    state.stood = board_.now();
    state.call.assign(item.call.size(), kNever);
    for (const Posting& posting : item.first) {
      board_.post(posting.note, posting.to, state.stood, {});
    }
  }

  double due_of(std::size_t lane, const Item& item) {
    State& state = state_[lane];
    double due = latest(item.waits);
    for (std::size_t i = 0; i < item.call.size(); ++i) {
      if (state.call[i] == kNever) state.call[i] = exchanged(item.call[i], state.stood);
      due = std::max(due, state.call[i]);
    }
    return due;
  }

  [[nodiscard]] double latest(std::span<const Wait> waits) const {
    double due = 0;
    for (const Wait& wait : waits) {
      if (wait.what == Wait::For::kItem) {
        const auto lane = static_cast<std::size_t>(wait.lane);
        const bool ended = state_[lane].next > wait.id;
        due = std::max(due, ended ? record_.items[lane][wait.id].end : kNever);
      } else {
        due =
            std::max(due, board_.posted(wait.id) ? board_.seconds(wait.id) + wait.seconds : kNever);
      }
    }
    return due;
  }

  // When the message of a call that stands is there; never while its other end is missing.
  double exchanged(const CallEnd& end, double stood) {
    if (!end.sends) {
      const NoteId data = ids_.data(end.message);
      return board_.posted(data) ? board_.seconds(data) + end.seconds : kNever;
    }
    const NoteId ready = ids_.ready(end.message);
    if (!board_.posted(ready)) return kNever;
    const double leaves = std::max(stood, board_.seconds(ready));
    const NoteId data = ids_.data(end.message);
    board_.post(data, std::span(&end.peer, 1), leaves, work_.bytes(data));
    return leaves + end.seconds;
  }

  void start(std::size_t lane, const Item& item) {
    State& state = state_[lane];
    state.runs = true;
    const double now = board_.now();
    record_.items[lane][state.next].start = now;
    state.until = now + item.seconds;
    for (const CallEnd& end : item.call) {
      if (!end.sends) note_arrival(ids_.data(end.message), end.seconds);
    }
    if (item.kind == Item::Kind::kPass) {
      for (const Wait& wait : item.waits) {
        if (wait.what == Wait::For::kNote && wait.id < ids_.ready(0) &&
            script_.lanes[static_cast<std::size_t>(Lane::kMessages)].empty()) {
          note_arrival(wait.id, wait.seconds);
        }
      }
      work_.run(program_.passes(device_)[item.position], board_);
    } else if (item.kind == Item::Kind::kCopy) {
      work_.start_copy(item.copy, lane == static_cast<std::size_t>(Lane::kCopyOut));
    }
  }

  void note_arrival(NoteId data, double seconds) {
    const double left = board_.seconds(data);
    record_.messages.push_back({data, {left, left + seconds}});
  }

  bool end_if_due(std::size_t lane, const Item& item, double& next) {
    State& state = state_[lane];
    const double now = board_.now();
    if (now < state.until) {
      next = std::min(next, state.until);
      return false;
    }
    record_.items[lane][state.next].end = now;
    if (item.kind == Item::Kind::kCopy) {
      work_.end_copy(item.copy, lane == static_cast<std::size_t>(Lane::kCopyOut));
    }
    for (const Posting& posting : item.posts) {
      const bool copy = item.kind == Item::Kind::kCopy;
      board_.post(posting.note, posting.to, now,
                  copy ? std::span<const std::byte>() : work_.bytes(posting.note));
    }
    state = {.next = state.next + 1};
    return true;
  }

  const Program& program_;
  NoteIds ids_;
  const DeviceScript& script_;
  int device_;
  Work& work_;
  Board& board_;
  std::array<State, kLanes> state_;
  DeviceRecord record_;
};

}  // namespace

DeviceRecord execute(const Program& program, const DeviceScript& script, int device, Work& work,
                     Board& board) {
  return Device(program, script, device, work, board).run();
}

}  // namespace pipesim::runtime
