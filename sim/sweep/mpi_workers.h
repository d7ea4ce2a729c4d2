// The workers of all ranks that mpirun or srun has started, seen from rank 0.
//
// Every rank runs the same command and forks its own workers before MPI starts; ranks above 0 pass
// points and results on. A rank that dies ends the job, as MPI does; what was stored is kept, and
// the same command goes on from there.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/mpi/mpi.h"
#include "sim/sweep/workers.h"

namespace pipesim {

// Rank 0's workers: its own first, then those of rank 1, and so on. `local` has as many as every
// other rank. Its end lets the other ranks end.
class MpiWorkers final : public Workers {
 public:
  MpiWorkers(LocalWorkers& local, const Mpi& mpi)
      : local_(local), mpi_(mpi), lives_(local.count() * mpi.size()) {}
  ~MpiWorkers() override;
  // Waits until every rank has reported its text's digest. InputError, at `asked`, for the first
  // whose `digest` differs.
  void check_same(const std::string& digest, const Location& asked) const;

  [[nodiscard]] int count() const override { return local_.count() * mpi_.size(); }
  void give(int worker, std::span<const std::uint32_t> points) override;
  std::vector<WorkerEvent> wait(int milliseconds) override;

 private:
  LocalWorkers& local_;
  const Mpi& mpi_;
  std::vector<std::uint32_t> lives_;  // how often each worker of another rank has died
};

// Serves on a rank above 0 until rank 0 has no more points; `digest` is of the text it has read.
void serve_rank(LocalWorkers& local, const Mpi& mpi, const std::string& digest);

}  // namespace pipesim
