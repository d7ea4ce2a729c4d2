#include "sim/sweep/workers.h"

#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/child_process.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 10;
constexpr int kIdleDeaths = 5;

// Answers until the other end closes or dies.
void answer(int socket, const EvaluatePoint& evaluate) {
  std::vector<std::uint32_t> points(kMaxChunk);
  for (;;) {
    const ssize_t got = ::recv(socket, points.data(), points.size() * sizeof(points[0]), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof(points[0]); ++i) {
      const std::string result = evaluate(points[i]);
      ssize_t sent = 0;
      do {
        sent = ::send(socket, result.data(), result.size(), MSG_NOSIGNAL);
      } while (sent < 0 && errno == EINTR);
      if (sent < 0) return;
    }
  }
}

[[noreturn]] void be_worker(int socket, const EvaluatePoint& evaluate) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  // Nothing of the parent's but standard output and error: no store, no ends of others' sockets.
  constexpr int kSocket = 3;
  if (socket != kSocket) ::dup2(socket, kSocket);
  ::close_range(kSocket + 1, ~0U, 0);
  // One simulation after the other takes the same memory: giving it back would cost page faults.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  try {
    answer(kSocket, evaluate);
  } catch (...) {  // out of memory: the parent sees the process end
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

LocalWorkers::LocalWorkers(int count, EvaluatePoint evaluate)
    : evaluate_(std::move(evaluate)), workers_(count), buffer_(kMaxMessage, 0) {
  try {
    for (Process& process : workers_) start(process);
  } catch (...) {
    end_all();
    throw;
  }
}

LocalWorkers::~LocalWorkers() { end_all(); }

void LocalWorkers::end_all() {
  for (Process& process : workers_) {
    if (process.pid > 0) ::kill(process.pid, SIGKILL);
  }
  for (Process& process : workers_) {
    if (process.pid > 0) (void)bury(process);
  }
}

void LocalWorkers::start(Process& process) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    refuse_by_system("no process can be started", errno);
  }
  const pid_t child = fork_child();
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    refuse_by_system("no process can be started", error);
  }
  if (child == 0) be_worker(ends[1], evaluate_);
  ::close(ends[1]);
  process.pid = child;
  process.socket = ends[0];
}

// Takes leave of a process that has ended or is about to: how it ended.
std::string LocalWorkers::bury(Process& process) {
  ::close(process.socket);
  const int status = status_of(process.pid);
  process.pid = -1;
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return fmt::format("its process {}{}", how_it_ended(status),
                     killed ? ", as the system does when memory runs out" : "");
}

void LocalWorkers::give(int worker, std::span<const std::uint32_t> points) {
  if (points.size() > kMaxChunk) throw LogicError("a chunk of too many points");
  // A worker's end from here on may be a point's fault.
  workers_[worker].idle_deaths = 0;
  // A worker that has just died does not get them: wait() will say so.
  (void)::send(workers_[worker].socket, points.data(), points.size_bytes(), MSG_NOSIGNAL);
}

void LocalWorkers::drain(int worker, std::vector<WorkerEvent>& events) {
  Process& process = workers_[worker];
  for (;;) {
    const ssize_t got = ::recv(process.socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) break;
    process.idle_deaths = 0;
    events.push_back(
        {worker, WorkerEvent::Kind::kResult, buffer_.substr(0, static_cast<size_t>(got))});
  }
  const int deaths = process.idle_deaths + 1;
  events.push_back({worker, WorkerEvent::Kind::kDied, bury(process)});
  if (deaths > kIdleDeaths) {
    throw InfeasibleError(fmt::format(
        "processes of the sweep end before they have done anything: {}", events.back().text));
  }
  start(process);
  process.idle_deaths = deaths;
}

std::vector<WorkerEvent> LocalWorkers::wait(int milliseconds) {
  std::vector<pollfd> polled;
  for (const Process& process : workers_) polled.push_back({process.socket, POLLIN, 0});
  std::vector<WorkerEvent> events;
  if (::poll(polled.data(), polled.size(), milliseconds) <= 0) return events;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) drain(static_cast<int>(i), events);
  }
  return events;
}

}  // namespace pipesim
