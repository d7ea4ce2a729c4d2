// The workers of all ranks that mpirun or srun has started, seen from rank 0.
//
// Every rank runs the same command and forks its own workers before MPI starts; ranks above 0 pass
// points and results on. A rank that dies ends the job, as MPI does; what was stored is kept, and
// the same command goes on from there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/mpi_module.h"
#include "sim/sweep/workers.h"

namespace pipesim {

// Which of how many ranks this process was started as; nothing where it was started alone. Reads
// the environment that Open MPI's mpirun, Hydra (PMI) and srun set.
struct Launch {
  int rank = 0;
  int size = 1;
};
std::optional<Launch> launch();

// MPI between its start and its end. InfeasibleError where pipesim was built without it, or where
// ranks do not find each other.
class Mpi {
 public:
  explicit Mpi(const Launch& launched);
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  ~Mpi();

  struct Message {
    int from = 0;
    std::string bytes;
  };
  void send(int to, const std::string& bytes) const;
  [[nodiscard]] std::optional<Message> receive() const;  // what has come
  [[nodiscard]] int size() const { return calls_->size(); }

 private:
  const MpiCalls* calls_;
};

// Of rank 0: its own first, then those of rank 1, and so on. `local` has as many as those of every
// other rank. Its end lets the other ranks end.
class MpiWorkers final : public Workers {
 public:
  MpiWorkers(LocalWorkers& local, const Mpi& mpi) : local_(local), mpi_(mpi) {}
  ~MpiWorkers() override;

  [[nodiscard]] int count() const override { return local_.count() * mpi_.size(); }
  void give(int worker, std::span<const std::uint32_t> points) override;
  std::vector<WorkerEvent> wait(int milliseconds) override;

 private:
  LocalWorkers& local_;
  const Mpi& mpi_;
};

// What a rank above 0 does until rank 0 has no more points.
void serve_rank(LocalWorkers& local, const Mpi& mpi);

}  // namespace pipesim
