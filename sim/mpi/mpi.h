// Messages between the processes that mpirun or srun has started, on however many machines.
//
// MPI is a module that is loaded here (mpi_module.h), so that everything builds and runs without
// it. Faults of MPI end the job, as MPI does.
#pragma once

#include <optional>
#include <string>

#include "sim/mpi/mpi_module.h"

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
  // Ends the processes of all ranks, whatever they are at.
  [[noreturn]] void abort(int code) const;

 private:
  const MpiCalls* calls_;
};

}  // namespace pipesim
