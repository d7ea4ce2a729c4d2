// CUDA's resources as values that free themselves, and its errors as exceptions.
//
// Memory is plain device memory (never managed) or pinned host memory. Errors: CudaError with the
// name of the call and CUDA's own reason; destructors never throw.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pipesim::calibration {

// A library's refusal, after which the device remains usable.
class LibraryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Memory that could not be had; the device itself is well.
class OutOfMemory : public CudaError {
 public:
  using CudaError::CudaError;
};

void check_cuda(cudaError_t status, std::string_view what);

// Why no CUDA device can be used; empty when one can.
[[nodiscard]] std::string why_no_device();

struct FreeDevice {
  void operator()(void* p) const { cudaFree(p); }
};
struct FreePinned {
  void operator()(void* p) const { cudaFreeHost(p); }
};

template <class Free>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <class T = void>
  [[nodiscard]] T* at(std::size_t byte_offset = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.get()) + byte_offset);
  }

 private:
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

using DeviceBuffer = Buffer<FreeDevice>;
using PinnedBuffer = Buffer<FreePinned>;

class Stream {
 public:
  Stream();
  [[nodiscard]] cudaStream_t get() const { return stream_.get(); }
  void synchronize() const;

 private:
  struct Destroy {
    void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Event {
 public:
  Event();
  void record(const Stream& stream) const;
  void synchronize() const;
  // Microseconds from `earlier` to this event; both must have completed.
  [[nodiscard]] double microseconds_since(const Event& earlier) const;
  [[nodiscard]] cudaEvent_t get() const { return event_.get(); }

 private:
  struct Destroy {
    void operator()(cudaEvent_t e) const { cudaEventDestroy(e); }
  };
  std::unique_ptr<CUevent_st, Destroy> event_;
};

}  // namespace pipesim::calibration
