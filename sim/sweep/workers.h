// The processes that evaluate points: numbered, each fed with chunks, each answering point by
// point.
//
// Here those of this machine; mpi_workers.h adds those of other ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace pipesim {

struct WorkerEvent {
  enum class Kind : std::uint8_t {
    kResult,  // `text` holds the bytes of one point, in the order in which points were given
    kDied,    // `text` says how; the worker has been replaced and waits for points
  };
  int worker = 0;
  Kind kind = Kind::kResult;
  std::string text;
};

class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  virtual ~Workers() = default;

  [[nodiscard]] virtual int count() const = 0;
  // Queues points behind those that the worker has. A chunk has at most kMaxChunk.
  virtual void give(int worker, std::span<const std::uint32_t> points) = 0;
  // The events since the last call; waits up to so long for the first.
  virtual std::vector<WorkerEvent> wait(int milliseconds) = 0;
};

inline constexpr size_t kMaxChunk = 256;

// Evaluates a point; runs in the worker's process only.
using EvaluatePoint = std::function<std::string(std::uint32_t point)>;

// Forked processes of this machine. The kernel ends them with this one, whatever ends it
// (PR_SET_PDEATHSIG), and they leave Ctrl-C to it. Make them before threads, MPI or a store: each
// is a copy of the process at that time. One that dies is replaced. InfeasibleError where the
// system makes no process.
class LocalWorkers final : public Workers {
 public:
  LocalWorkers(int count, EvaluatePoint evaluate);
  ~LocalWorkers() override;

  [[nodiscard]] int count() const override { return static_cast<int>(workers_.size()); }
  void give(int worker, std::span<const std::uint32_t> points) override;
  std::vector<WorkerEvent> wait(int milliseconds) override;

 private:
  struct Process {
    pid_t pid = -1;
    int socket = -1;
    // Ends that came with nothing done: one that cannot even begin is not replaced for ever.
    int idle_deaths = 0;
  };

  void start(Process& process);
  void end_all();
  void drain(int worker, std::vector<WorkerEvent>& events);
  std::string bury(Process& process);

  EvaluatePoint evaluate_;
  std::vector<Process> workers_;
  std::string buffer_;
};

}  // namespace pipesim
