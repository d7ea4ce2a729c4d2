#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <map>
#include <set>
#include <sys/mman.h>

#include "tests/calibration/harness/virtual_device.h"

// The opaque types behind CUDA's handles: here they are clocks.
struct CUstream_st {
  int device = -1;  // the default stream is of the current one
  double time_us = 0;
};
struct CUevent_st {
  int device = 0;
  double time_us = -1;
};
struct CUmemPoolHandle_st {
  int device = 0;
  std::size_t used_bytes = 0;
  std::size_t peak_bytes = 0;
};

namespace pipesim::calibration::virtual_device {
namespace {

constexpr double kHostLaunchUs = 2;

struct Region {
  std::size_t bytes = 0;
  double from_us = 0;  // on the stream that asked for it
  double used_us = 0;  // the end of the last copy
  cudaMemPool_t pool = nullptr;
};
std::map<const std::byte*, Region> regions;
CUstream_st default_stream;
std::set<CUstream_st*> streams{&default_stream};

CUstream_st& stream_of(cudaStream_t stream) { return stream ? *stream : default_stream; }

// Address space without memory behind it: whoever touches it is told so by the kernel.
void* reserve(std::size_t bytes) {
  void* p = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("no address space for an allocation");
  regions[static_cast<const std::byte*>(p)] = {.bytes = bytes};
  ++state().allocations;
  return p;
}

std::size_t release(void* p) {
  const auto found = regions.find(static_cast<const std::byte*>(p));
  if (found == regions.end()) return 0;
  const std::size_t bytes = found->second.bytes;
  munmap(p, std::max<std::size_t>(bytes, 1));
  regions.erase(found);
  --state().allocations;
  return bytes;
}

// The region that holds the pointer; the first after it is not its own.
Region& region_of(const char* what, const void* pointer) {
  auto after = regions.upper_bound(static_cast<const std::byte*>(pointer));
  if (after == regions.begin()) fail(std::string(what) + " lies in no allocation");
  return (--after)->second;
}

// A copy's memory: there before it starts.
void use(const char* what, const void* pointer, double start_us, double end_us) {
  Region& region = region_of(what, pointer);
  if (start_us < region.from_us) fail(std::string(what) + " is not there yet");
  region.used_us = std::max(region.used_us, end_us);
}

}  // namespace

State& state() {
  static State instance;
  return instance;
}

void fail(const std::string& reason) { throw VirtualDeviceError(reason); }

void require_region(const char* what, const void* pointer, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(pointer);
  auto after = regions.upper_bound(first);
  if (after == regions.begin()) fail(std::string(what) + " lies in no allocation");
  --after;
  if (first + bytes > after->first + after->second.bytes) {
    fail(std::string(what) + " leaves its allocation");
  }
  if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) {
    fail(std::string(what) + " is not aligned to 16 bytes");
  }
}

int device_of(cudaStream_t stream) {
  const int device = stream_of(stream).device;
  return device < 0 ? state().current : device;
}

double& time_of(cudaStream_t stream) { return stream_of(stream).time_us; }

void advance(cudaStream_t stream, double duration_us) {
  State& now = state();
  if (device_of(stream) != now.current) fail("work for a stream of another device");
  now.host_us += kHostLaunchUs;
  CUstream_st& s = stream_of(stream);
  s.time_us = std::max(s.time_us, now.host_us) + duration_us;
}

}  // namespace pipesim::calibration::virtual_device

namespace vd = pipesim::calibration::virtual_device;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = vd::state().devices, cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "virtual"; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "virtual";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= vd::state().devices) vd::fail("a device that is not there");
  return vd::state().current = device, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = cudaDeviceProp{};
  std::snprintf(properties->name, sizeof(properties->name), "Virtual GPU");
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->totalGlobalMem = vd::state().memory_bytes;
  properties->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "ffff:%02x:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  vd::State& now = vd::state();
  if (now.used_bytes + bytes > now.memory_bytes) return cudaErrorMemoryAllocation;
  now.used_bytes += bytes;
  now.peak_bytes = std::max(now.peak_bytes, now.used_bytes);
  return *p = vd::reserve(bytes), cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  vd::state().used_bytes -= vd::release(p);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** p, size_t bytes) { return *p = vd::reserve(bytes), cudaSuccess; }
cudaError_t cudaFreeHost(void* p) { return vd::release(p), cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  vd::streams.insert(*s = new CUstream_st{vd::state().current, 0});
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  vd::streams.erase(s);
  return delete s, cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  vd::state().host_us = std::max(vd::state().host_us, vd::stream_of(s).time_us);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  for (cudaStream_t stream : vd::streams) {
    if (vd::device_of(stream) == vd::state().current) cudaStreamSynchronize(stream);
  }
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) {
  return *e = new CUevent_st{vd::state().current, -1}, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  CUstream_st& stream = vd::stream_of(s);
  if (e->device != vd::device_of(s)) vd::fail("an event of another device than its stream");
  stream.time_us = std::max(stream.time_us, vd::state().host_us);
  return e->time_us = stream.time_us, cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  vd::state().host_us = std::max(vd::state().host_us, e->time_us);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (begin->device != end->device) vd::fail("events of two devices");
  if (begin->time_us < 0 || end->time_us < 0) vd::fail("an event that was never recorded");
  if (end->time_us > vd::state().host_us || begin->time_us > vd::state().host_us) {
    vd::fail("an event that the host has not waited for");
  }
  return *ms = static_cast<float>((end->time_us - begin->time_us) * 1e-3), cudaSuccess;
}

cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind) { return cudaSuccess; }
cudaError_t cudaMemset(void* p, int, size_t bytes) {
  return vd::require_region("memset", p, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s) {
  vd::require_region("copy target", to, bytes);
  vd::require_region("copy source", from, bytes);
  const auto size = static_cast<double>(bytes);
  const double start = std::max(vd::time_of(s), vd::state().host_us);
  vd::advance(s,
              vd::kLaunchUs + (kind == cudaMemcpyDeviceToDevice ? 2 * size / vd::kMemoryBytesPerUs
                                                                : size / vd::kCopyBytesPerUs));
  vd::use("copy target", to, start, vd::time_of(s));
  vd::use("copy source", from, start, vd::time_of(s));
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) { return *device = vd::state().current, cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (e->time_us < 0) vd::fail("a wait for an event that was never recorded");
  vd::time_of(s) = std::max(vd::time_of(s), e->time_us);
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return *pool = new CUmemPoolHandle_st{properties->location.id}, cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return delete pool, cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr name, void*) {
  if (name == cudaMemPoolAttrUsedMemHigh) pool->peak_bytes = pool->used_bytes;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr name, void* value) {
  if (name != cudaMemPoolAttrUsedMemHigh) vd::fail("an attribute of pools that is not kept here");
  *static_cast<std::uint64_t*>(value) = pool->peak_bytes;
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t pool, cudaStream_t s) {
  if (pool->device != vd::device_of(s)) vd::fail("a pool of another device than the stream");
  if (const cudaError_t status = cudaMalloc(p, bytes); status != cudaSuccess) return status;
  vd::Region& region = vd::region_of("a block", *p);
  region.from_us = std::max(vd::time_of(s), vd::state().host_us);
  region.pool = pool;
  pool->used_bytes += bytes;
  pool->peak_bytes = std::max(pool->peak_bytes, pool->used_bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  const vd::Region& region = vd::region_of("a block", p);
  if (region.pool == nullptr) vd::fail("a block of no pool");
  const double now = std::max(vd::time_of(s), vd::state().host_us);
  if (now < region.from_us || now < region.used_us) vd::fail("a block is released in use");
  region.pool->used_bytes -= region.bytes;
  return cudaFree(p);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  vd::state().captured = 0;
  return vd::state().capturing = true, cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  vd::state().capturing = false;
  return *graph = reinterpret_cast<cudaGraph_t>(new int(vd::state().captured)), cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const int nodes = *reinterpret_cast<int*>(graph);
  return *executable = reinterpret_cast<cudaGraphExec_t>(new int(nodes)), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return delete reinterpret_cast<int*>(graph), cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return delete reinterpret_cast<int*>(graph), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
  vd::advance(s, vd::kEmptyKernelUs * *reinterpret_cast<int*>(graph));
  return cudaSuccess;
}

}  // extern "C"
