// The processes that the SimGrid engine runs in, seen from the caller.
//
// Caller --fork--> server --fork per call--> worker --fork per run of an ensemble--> run. The
// server loads the module once (libsimgrid costs 25 ms) and stays small, so that its forks are
// cheap. The worker builds the platform; its runs inherit it. Jobs and results are in memory that
// all map. None outlives its parent, none prints. Errors inside them return in the job; a refusal
// by the system around them is an InfeasibleError.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>

#include "sim/engine/simgrid_module.h"

namespace pipesim {

// The file that the server loads; it is not there in a build without SimGrid.
std::string simgrid_module();

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

// A job in memory that several processes map.
class SharedJob {
 public:
  // Makes one, zero-filled but for its sizes.
  explicit SharedJob(const JobSizes& sizes);
  // Maps one that another process made.
  SharedJob(FileDescriptor file, const JobSizes& sizes);
  SharedJob(const SharedJob&) = delete;
  SharedJob& operator=(const SharedJob&) = delete;
  ~SharedJob();

  // Maps all pages at once, for a process that will touch them all: cheaper than a fault for each.
  void populate();

  [[nodiscard]] Job& job() { return job_; }
  [[nodiscard]] int file() const { return file_.get(); }

 private:
  void map(const JobSizes& sizes);

  FileDescriptor file_;
  std::uint64_t bytes_;
  void* mapping_ = nullptr;
  Job job_;
};

// The caller's hold on a server: started when first needed, ended with this object. A process that
// was forked from the one that started a server starts its own. Calls from several threads are
// served one after the other; the thread that makes the first must outlive the others.
class ServerProcess {
 public:
  ServerProcess() = default;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() { (void)stop(); }

  // Returns when every run of the job has ended, well or not (JobRun::state). Throws Stopped, and
  // ends the server, once the thread's StopOn is set.
  void serve(SharedJob& shared);

 private:
  [[nodiscard]] bool alive();
  void start();
  void launch();
  // Waits for the server's answer, or its end. True where there is neither after `patience`.
  bool is_silent(std::optional<std::chrono::seconds> patience);
  bool answers();
  void kill();
  int stop();  // its status

  std::mutex mutex_;
  FileDescriptor socket_;
  pid_t server_ = 0;
  pid_t owner_ = 0;  // the process that started it; 0: none runs
};

}  // namespace pipesim
