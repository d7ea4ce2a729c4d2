// Loaded before the C library (LD_PRELOAD), makes one of its calls fail: PIPESIM_FAULT is
// "CALL:NUMBER:ERRNO", and that call and all after it fail so.
//
// CALL is write (of regular files), fsync, rename, open, malloc (of 4 KiB or more), fork, or thread
// (pthread_create). A NUMBER of 0
// makes none fail. At the end of the process PIPESIM_FAULT_COUNT, a file, gets a line with how many
// calls there were.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Fault {
  char call[16] = "";
  long number = 0;
  int error = 0;
  pid_t process = 0;
};

Fault fault;
std::atomic<long> calls = 0;

__attribute__((constructor)) void read_fault() {
  const char* asked = std::getenv("PIPESIM_FAULT");
  fault.process = ::getpid();
  if (asked != nullptr)
    std::sscanf(asked, "%15[a-z]:%ld:%d", fault.call, &fault.number, &fault.error);
}

__attribute__((destructor)) void write_count() {
  const char* path = std::getenv("PIPESIM_FAULT_COUNT");
  if (path == nullptr || ::getpid() != fault.process) return;
  const long counted = calls;
  fault.call[0] = 0;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", counted);
  std::fclose(file);
}

// Fails in the program itself, not in processes that it has forked.
bool fails(const char* call) {
  if (std::strcmp(call, fault.call) != 0 || ::getpid() != fault.process) return false;
  const long number = ++calls;
  if (fault.number == 0 || number < fault.number) return false;
  errno = fault.error;
  return true;
}

bool is_file(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  return is_file(descriptor) && fails("write") ? -1 : real(descriptor, bytes, count);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return is_file(descriptor) && fails("write") ? -1 : real(descriptor, bytes, count, at);
}
int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails("fsync") ? -1 : real(descriptor);
}
int fdatasync(int descriptor) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return fails("fsync") ? -1 : real(descriptor);
}
int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return fails("rename") ? -1 : real(from, to);
}
int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("open") ? -1 : real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open64");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("open") ? -1 : real(path, flags, mode);
}
pid_t fork() noexcept {
  static const auto real = next<pid_t (*)()>("fork");
  return fails("fork") ? -1 : real();
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = next<Create>("pthread_create");
  return fails("thread") ? fault.error : real(thread, attributes, run, argument);
}
void* malloc(size_t size) noexcept {
  static const auto real = next<void* (*)(size_t)>("malloc");
  constexpr size_t kLarge = 4096;
  return size >= kLarge && fault.call[0] == 'm' && fails("malloc") ? nullptr : real(size);
}

}  // extern "C"
