#include "sim/engine/simgrid_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <new>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/child_process.h"
#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/core/stop.h"

namespace pipesim {
namespace {

// Repeats a system call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

[[noreturn]] void refuse(std::string_view what) {
  refuse_by_system(fmt::format("engine: simgrid: {}", what), errno);
}

void record(JobRun& run, JobState state, std::string_view message) {
  const size_t length = std::min(message.size(), sizeof(run.message) - 1);
  std::memcpy(run.message, message.data(), length);
  run.message[length] = '\0';
  run.state = state;
}

// One message: the sizes of a job and the file that it stands in.
class JobMessage {
 public:
  explicit JobMessage(JobSizes& sizes) : data_{&sizes, sizeof(sizes)} {
    header_.msg_iov = &data_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_.data();
    header_.msg_controllen = control_.size();
  }
  JobMessage(const JobMessage&) = delete;
  JobMessage& operator=(const JobMessage&) = delete;

  [[nodiscard]] bool send(int socket, int file) {
    cmsghdr* const attached = CMSG_FIRSTHDR(&header_);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof(file));
    std::memcpy(CMSG_DATA(attached), &file, sizeof(file));
    return retry([&] { return sendmsg(socket, &header_, MSG_NOSIGNAL); }) >= 0;
  }

  // The file, or none when the other side has gone.
  [[nodiscard]] FileDescriptor receive(int socket) {
    const ssize_t got = retry([&] { return recvmsg(socket, &header_, MSG_CMSG_CLOEXEC); });
    const cmsghdr* const attached = CMSG_FIRSTHDR(&header_);
    if (got != static_cast<ssize_t>(data_.iov_len) || attached == nullptr) return FileDescriptor();
    int file = -1;
    std::memcpy(&file, CMSG_DATA(attached), sizeof(file));
    return FileDescriptor(file);
  }

 private:
  iovec data_;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_{};
  msghdr header_{};
};

// The server's life; it never returns to the caller's code.
class Server {
 public:
  explicit Server(int socket) : socket_(socket) {}

  [[noreturn]] void serve() {
    detach();
    try {
      load_module();
    } catch (const std::exception&) {  // the first job says so
    }
    answer();
    while (true) {
      JobSizes sizes;
      FileDescriptor file = JobMessage(sizes).receive(socket_);
      if (file.get() < 0) _exit(0);  // the caller has gone
      try {
        SharedJob shared(std::move(file), sizes);
        serve(shared);
      } catch (const std::exception&) {
        _exit(1);  // no memory to answer in
      }
      answer();
    }
  }

 private:
  // Says that it is ready, or that a job is done.
  void answer() const {
    const char done = 0;
    if (retry([&] { return ::send(socket_, &done, 1, MSG_NOSIGNAL); }) < 0) _exit(0);
  }
  // Leaves the caller's files and signal handlers behind; what SimGrid prints when it aborts is
  // kept for the message.
  void detach() {
    for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setpgid(0, 0);  // an interrupt from the terminal is the caller's to handle
    dup2(socket_, 3);
    socket_ = 3;
    close_range(4, ~0U, 0);
    const int nothing = open("/dev/null", O_RDWR);
    output_ = memfd_create("pipesim-output", MFD_CLOEXEC);
    fcntl(output_, F_SETFL, O_APPEND);
    dup2(nothing, STDIN_FILENO);
    dup2(output_, STDOUT_FILENO);
    dup2(output_, STDERR_FILENO);
  }

  void load_module() {
    if (module_ != nullptr) return;
    void* library = dlopen(simgrid_module().c_str(), RTLD_NOW);
    if (library == nullptr) throw InfeasibleError(dlerror());
    auto* const entry = reinterpret_cast<JobModuleEntry*>(dlsym(library, kJobModuleEntry));
    if (entry == nullptr) throw InfeasibleError(dlerror());
    module_ = entry();
  }

  void serve(SharedJob& shared) {
    Job& job = shared.job();
    JobRun& setup = job.header->setup;
    try {
      load_module();
    } catch (const std::exception& error) {
      return record(setup, JobState::kRefused, error.what());
    }
    retry([&] { return ftruncate(output_, 0); });
    const pid_t worker = fork_child();
    if (worker < 0) return record(setup, JobState::kRefused, no_process());
    if (worker == 0) {
      if (job.runs.size() == 1) shared.populate();
      work(job);
      _exit(0);
    }
    const int death = wait_for(worker).second;
    if (setup.state == JobState::kPending) record_death(setup, death);
    for (JobRun& run : job.runs) {
      if (setup.state == JobState::kDone && run.state == JobState::kPending) {
        record_death(run, death);
      }
    }
  }

  void work(Job& job) {
    JobRun& setup = job.header->setup;
    try {
      module_->prepare(job);
      setup.state = JobState::kDone;
    } catch (...) {
      return record_exception(setup);
    }
    if (job.runs.size() == 1) return execute(job, 0);
    std::map<pid_t, std::uint64_t> running;
    for (std::uint64_t next = 0; next < job.runs.size() || !running.empty();) {
      if (next < job.runs.size() && running.size() < job.header->settings.processes) {
        const pid_t child = fork_child();
        if (child == 0) {
          execute(job, next);
          _exit(0);
        }
        if (child > 0) {
          running.emplace(child, next++);
          continue;
        }
        // No more processes to be had: go on with those that run.
        if (running.empty()) return record(setup, JobState::kRefused, no_process());
      }
      const auto [child, death] = wait_for(-1);
      if (child < 0) return record(setup, JobState::kFailed, "a process was lost");
      const auto of = running.find(child);
      if (of == running.end()) continue;
      if (job.runs[of->second].state == JobState::kPending) {
        record_death(job.runs[of->second], death);
      }
      running.erase(of);
    }
  }

  void execute(Job& job, std::uint64_t number) const {
    JobRun& run = job.runs[number];
    try {
      module_->run(number);
      run.state = JobState::kDone;
    } catch (...) {
      record_exception(run);
    }
  }

  static std::string no_process() {
    return fmt::format("cannot start a process: {}", std::strerror(errno));
  }
  // The exception that is being handled.
  static void record_exception(JobRun& run) {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      record(run, JobState::kRefused, "not enough memory");
    } catch (const std::exception& error) {
      record(run, JobState::kFailed, error.what());
    }
  }
  // A process that ended before it had an answer, with what it printed.
  void record_death(JobRun& run, int status) const {
    std::string how = "its process " + how_it_ended(status);
    std::array<char, 300> printed{};
    const ssize_t length = pread(output_, printed.data(), printed.size(), 0);
    if (length > 0) how += ": " + std::string(printed.data(), static_cast<size_t>(length));
    const bool ended = WIFSIGNALED(status) && !is_own_fault(status);
    record(run, ended ? JobState::kRefused : JobState::kFailed, how);
  }
  // The child that ended, and its status.
  [[nodiscard]] static std::pair<pid_t, int> wait_for(pid_t which) {
    int status = 0;
    const pid_t child = retry([&] { return waitpid(which, &status, 0); });
    return {child, status};
  }

  int socket_;
  int output_ = -1;
  const JobModule* module_ = nullptr;
};

}  // namespace

std::string simgrid_module() { return module_file("simgrid-engine.so"); }

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

SharedJob::SharedJob(const JobSizes& sizes)
    : file_(memfd_create("pipesim-job", MFD_CLOEXEC)), bytes_(job_bytes(sizes)) {
  if (file_.get() < 0) refuse("shared memory");
  if (retry([&] { return ftruncate(file_.get(), static_cast<off_t>(bytes_)); }) < 0) {
    refuse("shared memory");
  }
  map(sizes);
  populate();
  job_.header->sizes = sizes;
}

SharedJob::SharedJob(FileDescriptor file, const JobSizes& sizes)
    : file_(std::move(file)), bytes_(job_bytes(sizes)) {
  map(sizes);
}

SharedJob::~SharedJob() { munmap(mapping_, bytes_); }

void SharedJob::map(const JobSizes& sizes) {
  mapping_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapping_ == MAP_FAILED) refuse("shared memory");
  job_ = job_view(mapping_, sizes);
}

void SharedJob::populate() { madvise(mapping_, bytes_, MADV_POPULATE_WRITE); }

void ServerProcess::serve(SharedJob& shared) {
  const std::scoped_lock lock(mutex_);
  if (!alive()) start();
  JobSizes sizes = shared.job().header->sizes;
  if (JobMessage(sizes).send(socket_.get(), shared.file()) && answers()) return;
  throw InfeasibleError(fmt::format("engine: simgrid: its process {}", how_it_ended(stop())));
}

bool ServerProcess::is_silent(std::optional<std::chrono::seconds> patience) {
  constexpr std::chrono::milliseconds kLook{50};
  const auto begin = std::chrono::steady_clock::now();
  pollfd answer{socket_.get(), POLLIN, 0};
  while (retry([&] { return ::poll(&answer, 1, static_cast<int>(kLook.count())); }) == 0) {
    if (patience && std::chrono::steady_clock::now() - begin > *patience) return true;
    if (!StopOn::is_asked()) continue;
    kill();
    throw Stopped();
  }
  return false;
}

bool ServerProcess::answers() {
  (void)is_silent(std::nullopt);
  char done = 0;
  return retry([&] { return recv(socket_.get(), &done, 1, 0); }) == 1;
}

void ServerProcess::kill() {
  ::kill(server_, SIGKILL);  // its runs die with it
  (void)stop();
}

bool ServerProcess::alive() {
  if (owner_ != getpid()) return false;
  if (retry([&] { return waitpid(server_, nullptr, WNOHANG); }) == 0) return true;
  owner_ = 0;
  return false;
}

// A fork copies the locks that other threads hold. glibc frees its allocator's in the child; with
// another allocator, a sanitizer's among them, the child may wait for ever.
void ServerProcess::start() {
  constexpr int kTries = 3;
  constexpr std::chrono::seconds kPatience{20};  // hundreds of times what a start takes
  for (int tries = 1;; ++tries) {
    launch();
    if (tries == kTries || !is_silent(kPatience)) break;
    kill();
  }
  (void)answers();  // where it has died, the first job tells how
}

void ServerProcess::launch() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) refuse("socket");
  FileDescriptor ours(ends[0]);
  const FileDescriptor theirs(ends[1]);
  const pid_t child = fork_child();
  if (child < 0) refuse("cannot start a process");
  if (child == 0) Server(theirs.get()).serve();
  socket_ = std::move(ours);
  server_ = child;
  owner_ = getpid();
}

int ServerProcess::stop() {
  socket_ = FileDescriptor();
  const int status = owner_ == getpid() ? status_of(server_) : 0;
  owner_ = 0;
  return status;
}

}  // namespace pipesim
