#include "sim/mpi/mpi.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

int number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

const MpiCalls* load() {
  const std::string module = module_file("mpi.so");
  std::error_code ignored;
  if (!std::filesystem::exists(module, ignored)) {
    throw InfeasibleError(
        "started as one of several ranks, but pipesim was built without MPI: install "
        "libopenmpi-dev and openmpi-bin and build it again, or start it alone");
  }
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw InfeasibleError(fmt::format("MPI cannot be loaded: {}", ::dlerror()));
  auto* const entry = reinterpret_cast<MpiModuleEntry*>(::dlsym(library, kMpiModuleEntry));
  if (entry == nullptr) throw InfeasibleError(::dlerror());
  return entry();
}

}  // namespace

std::optional<Launch> launch() {
  constexpr std::pair<const char*, const char*> kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, size] : kLaunchers) {
    const Launch launched{number_in(rank), number_in(size)};
    if (launched.size > 1 && launched.rank >= 0) return launched;
  }
  return std::nullopt;
}

Mpi::Mpi(const Launch& launched) : calls_(load()) {
  calls_->start();
  if (calls_->size() == launched.size) return;
  const int found = calls_->size();
  calls_->end();
  throw InfeasibleError(fmt::format(
      "{} ranks were started, but MPI joins {} of them; under Slurm try srun --mpi=pmix",
      launched.size, found));
}

Mpi::~Mpi() { calls_->end(); }

void Mpi::send(int to, const std::string& bytes) const {
  calls_->send(to, bytes.data(), bytes.size());
}

std::optional<Mpi::Message> Mpi::receive() const {
  Message message;
  const long size = calls_->waiting(&message.from);
  if (size < 0) return std::nullopt;
  message.bytes.resize(size);
  calls_->receive(message.from, message.bytes.data(), message.bytes.size());
  return message;
}

void Mpi::abort(int code) const {
  calls_->abort(code);
  std::_Exit(code);  // where MPI has not ended the process
}

}  // namespace pipesim
