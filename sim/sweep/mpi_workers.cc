#include "sim/sweep/mpi_workers.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <thread>

namespace pipesim {
namespace {

// How long a rank looks at its own workers before it looks at other ranks.
constexpr int kTurnMilliseconds = 1;

constexpr std::int32_t kEnd = -1;
constexpr std::int32_t kDigest = -2;

// Opens each message between ranks. First kDigest and the digest go to rank 0; then points to a
// worker, the kind and text of an event from it, or kEnd both ways.
struct Head {
  std::int32_t what = kEnd;  // or the number of a worker in its rank
  // How often rank 0 knew that worker to have died: what was sent to an earlier life is given again
  // by rank 0, and must not reach the next one too.
  std::uint32_t life = 0;
};

std::string message(Head head, std::string_view rest) {
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  return bytes.append(rest);
}

Head head_of(const std::string& bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), std::min(sizeof(head), bytes.size()));
  return head;
}

}  // namespace

MpiWorkers::~MpiWorkers() {
  for (int rank = 1; rank < mpi_.size(); ++rank) mpi_.send(rank, message({kEnd}, ""));
  // A rank may be about to send: it has ended when it says so.
  for (int left = mpi_.size() - 1; left > 0;) {
    const auto came = mpi_.receive();
    if (came && head_of(came->bytes).what == kEnd) --left;
  }
}

void MpiWorkers::check_same(const std::string& digest, const Location& asked) const {
  int other = 0;
  for (int left = mpi_.size() - 1; left > 0;) {
    const auto came = mpi_.receive();
    if (!came) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTurnMilliseconds));
      continue;
    }
    --left;
    const bool same = came->bytes == message({kDigest}, digest);
    if (!same && (other == 0 || came->from < other)) other = came->from;
  }
  if (other == 0) return;
  throw InputError(asked,
                   fmt::format("rank {} has read other files than rank 0, or is another build "
                               "of pipesim: the same must stand on all machines",
                               other));
}

void MpiWorkers::give(int worker, std::span<const std::uint32_t> points) {
  if (worker < local_.count()) return local_.give(worker, points);
  const std::string_view bytes(reinterpret_cast<const char*>(points.data()), points.size_bytes());
  mpi_.send(worker / local_.count(), message({worker % local_.count(), lives_[worker]}, bytes));
}

std::vector<WorkerEvent> MpiWorkers::wait(int milliseconds) {
  std::vector<WorkerEvent> events;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (events.empty() && std::chrono::steady_clock::now() < until) {
    events = local_.wait(kTurnMilliseconds);
    while (auto came = mpi_.receive()) {
      const int worker = came->from * local_.count() + head_of(came->bytes).what;
      const auto kind = static_cast<WorkerEvent::Kind>(came->bytes.at(sizeof(Head)));
      if (kind == WorkerEvent::Kind::kDied) ++lives_[worker];
      events.push_back({worker, kind, came->bytes.substr(sizeof(Head) + 1)});
    }
  }
  return events;
}

void serve_rank(LocalWorkers& local, const Mpi& mpi, const std::string& digest) {
  mpi.send(0, message({kDigest}, digest));
  std::vector<std::uint32_t> lives(local.count());
  for (;;) {
    while (const auto came = mpi.receive()) {
      const Head head = head_of(came->bytes);
      if (head.what == kEnd) return mpi.send(0, message({kEnd}, ""));
      if (head.life != lives[head.what]) continue;
      std::vector<std::uint32_t> points((came->bytes.size() - sizeof(head)) /
                                        sizeof(std::uint32_t));
      std::memcpy(points.data(), came->bytes.data() + sizeof(head),
                  points.size() * sizeof(points[0]));
      local.give(head.what, points);
    }
    for (const WorkerEvent& event : local.wait(kTurnMilliseconds)) {
      if (event.kind == WorkerEvent::Kind::kDied) ++lives[event.worker];
      mpi.send(0, message({event.worker}, static_cast<char>(event.kind) + event.text));
    }
  }
}

}  // namespace pipesim
