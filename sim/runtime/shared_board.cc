#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <limits>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/core/error.h"
#include "sim/runtime/board.h"

namespace pipesim::runtime {

struct SharedBoards::Header {
  std::atomic<std::uint32_t> bell;  // rung with every note for the device; a futex
  std::atomic<std::uint32_t> item;
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint64_t> left;  // bytes of its record
};

struct SharedBoards::Note {
  std::atomic<std::uint32_t> posted;
  std::uint32_t bytes;
  double seconds;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Returns at that time of the monotonic clock, when the word is not `seen`, or when it is rung.
void wait_for_bell(std::atomic<std::uint32_t>& bell, std::uint32_t seen, double until) {
  timespec time{};
  const timespec* limit = nullptr;
  if (until < std::numeric_limits<double>::infinity()) {
    time.tv_sec = static_cast<time_t>(until);
    time.tv_nsec = static_cast<long>(1e9 * (until - static_cast<double>(time.tv_sec)));
    limit = &time;
  }
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAIT_BITSET, seen, limit,
          nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

double monotonic_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class SharedBoard final : public Board {
 public:
  SharedBoard(SharedBoards& all, int device) : all_(all), mine_(all.header(device)) {}

  [[nodiscard]] double now() const override { return monotonic_seconds(); }

  void post(NoteId number, std::span<const int> to, double seconds,
            std::span<const std::byte> bytes) override {
    if (bytes.size() > all_.note_bytes_) throw LogicError("a note is longer than its place");
    SharedBoards::Note& note = all_.note(number);
    if (!bytes.empty()) std::memcpy(all_.payload(number), bytes.data(), bytes.size());
    note.bytes = static_cast<std::uint32_t>(bytes.size());
    note.seconds = seconds;
    note.posted.store(1, std::memory_order_release);
    for (const int device : to) ring(all_.header(device));
  }
  [[nodiscard]] bool posted(NoteId number) const override {
    return all_.note(number).posted.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] double seconds(NoteId number) const override { return all_.note(number).seconds; }
  [[nodiscard]] std::span<const std::byte> bytes(NoteId number) const override {
    return {all_.payload(number), all_.note(number).bytes};
  }
  void wait(double until) override {
    // A bell rung since the last wait has not been answered yet.
    const std::uint32_t heard = mine_.bell.load(std::memory_order_acquire);
    if (heard == heard_) wait_for_bell(mine_.bell, heard, until);
    heard_ = mine_.bell.load(std::memory_order_acquire);
  }
  void stand_at(std::uint32_t item) override { mine_.item.store(item, std::memory_order_relaxed); }

 private:
  static void ring(SharedBoards::Header& header) {
    header.bell.fetch_add(1, std::memory_order_acq_rel);
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&header.bell), FUTEX_WAKE, INT_MAX, nullptr,
            nullptr, 0);
  }

  SharedBoards& all_;
  SharedBoards::Header& mine_;
  std::uint32_t heard_ = 0;
};

SharedBoards::SharedBoards(int devices, NoteId notes, std::size_t note_bytes,
                           std::size_t record_bytes)
    : devices_(static_cast<std::size_t>(devices)),
      notes_(notes),
      note_bytes_(whole_lines(note_bytes)),
      record_bytes_(whole_lines(record_bytes)) {
  size_ = devices_ * (kLine + record_bytes_) + notes_ * (whole_lines(sizeof(Note)) + note_bytes_);
  // Pages that are never touched take no memory.
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw InfeasibleError(fmt::format("no {:.1f} GiB of shared memory for messages",
                                      static_cast<double>(size_) / (1U << 30U)));
  }
  memory_ = static_cast<std::byte*>(memory);
}

SharedBoards::~SharedBoards() { munmap(memory_, size_); }

SharedBoards::Header& SharedBoards::header(int device) const {
  return *reinterpret_cast<Header*>(memory_ + static_cast<std::size_t>(device) * kLine);
}
SharedBoards::Note& SharedBoards::note(NoteId number) const {
  return *reinterpret_cast<Note*>(memory_ + devices_ * kLine + number * whole_lines(sizeof(Note)));
}
std::byte* SharedBoards::payload(NoteId number) const {
  return memory_ + devices_ * kLine + notes_ * whole_lines(sizeof(Note)) + number * note_bytes_;
}
char* SharedBoards::record(int device) const {
  return reinterpret_cast<char*>(memory_ + size_ -
                                 (devices_ - static_cast<std::size_t>(device)) * record_bytes_);
}

std::unique_ptr<Board> SharedBoards::board(int device) {
  return std::make_unique<SharedBoard>(*this, device);
}

void SharedBoards::leave(int device, const std::string& bytes, bool failed) {
  if (bytes.size() > record_bytes_ && !failed)
    throw LogicError("a record is longer than its place");
  const std::size_t size = std::min(bytes.size(), record_bytes_);
  if (size > 0) std::memcpy(record(device), bytes.data(), size);
  header(device).left = size;
  header(device).failed = failed ? 1 : 0;
}
std::span<const char> SharedBoards::left(int device) const {
  return {record(device), header(device).left};
}
bool SharedBoards::failed(int device) const { return header(device).failed != 0; }
std::uint32_t SharedBoards::stands_at(int device) const { return header(device).item; }

}  // namespace pipesim::runtime
