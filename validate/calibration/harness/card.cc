#include "validate/calibration/harness/card.h"

#include <array>
#include <dlfcn.h>

#include "validate/calibration/harness/cuda_resource.h"

namespace pipesim::calibration {

// NVML by its documented C interface; its header is not part of every CUDA installation, and the
// library belongs to the driver.
struct Card::Nvml {
  using Handle = void*;
  enum Clock : int { kSm = 1, kMemory = 2 };
  static constexpr int kGpuTemperature = 0;

  int (*initialize)() = nullptr;
  int (*shut_down)() = nullptr;
  int (*handle_by_bus)(const char*, Handle*) = nullptr;
  int (*clock)(Handle, int, unsigned*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  // Watts at this moment; `power` is their mean over a second on newer cards. Not in old drivers.
  static constexpr unsigned kInstantPower = 186;
  struct Field {  // nvmlFieldValue_t
    unsigned id = kInstantPower, scope = 0;
    long long timestamp = 0, latency_us = 0;
    unsigned type = 0;
    int status = 0;
    unsigned long long value = 0;
  };
  int (*fields)(Handle, int, Field*) = nullptr;
  [[nodiscard]] unsigned milliwatts_or(unsigned mean) const {
    Field field;
    const bool read = fields != nullptr && fields(handle, 1, &field) == 0 && field.status == 0;
    return read && field.value > 0 ? static_cast<unsigned>(field.value) : mean;
  }

  int (*throttle_reasons)(Handle, unsigned long long*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;

  Nvml() = default;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (ready) shut_down();
    if (library != nullptr) dlclose(library);
  }

  template <class F>
  bool load(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  }

  // Empty when NVML can be read; else the reason.
  std::string open(const std::string& bus) {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "NVML's library is not there";
    const bool complete = load(initialize, "nvmlInit_v2") && load(shut_down, "nvmlShutdown") &&
                          load(handle_by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
                          load(clock, "nvmlDeviceGetClockInfo") &&
                          load(temperature, "nvmlDeviceGetTemperature") &&
                          load(power, "nvmlDeviceGetPowerUsage") &&
                          load(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
                          load(driver_version, "nvmlSystemGetDriverVersion");
    if (!complete) return "NVML's library lacks a function";
    (void)load(fields, "nvmlDeviceGetFieldValues");
    if (const int status = initialize(); status != 0) {
      return "NVML did not initialise, status " + std::to_string(status);
    }
    ready = true;
    if (const int status = handle_by_bus(bus.c_str(), &handle); status != 0) {
      return "NVML does not know the device, status " + std::to_string(status);
    }
    return {};
  }

  void* library = nullptr;
  Handle handle = nullptr;
  bool ready = false;
};

std::string bus_of(int device) {
  std::array<char, 32> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device),
             "cudaDeviceGetPCIBusId");
  return bus.data();
}

Card::Card(int device) : nvml_(std::make_unique<Nvml>()) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  facts_ = {.name = properties.name,
            .compute_capability =
                std::to_string(properties.major) + "." + std::to_string(properties.minor),
            .multiprocessors = properties.multiProcessorCount,
            .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
            .l2_bytes = properties.l2CacheSize,
            .devices = devices};
  capability_ = 10 * properties.major + properties.minor;
  bus_ = bus_of(device);
  nvml_reason_ = nvml_->open(bus_);
  if (!nvml_reason_.empty()) nvml_.reset();
}

Card::~Card() = default;

std::string Card::driver_version() const {
  std::array<char, 96> text{};
  if (nvml_ == nullptr || nvml_->driver_version(text.data(), text.size()) != 0) return {};
  return text.data();
}

std::optional<CardState> Card::state() const {
  if (nvml_ == nullptr) return std::nullopt;
  unsigned sm = 0, memory = 0, temperature = 0, milliwatts = 0;
  unsigned long long reasons = 0;
  const bool read = nvml_->clock(nvml_->handle, Nvml::kSm, &sm) == 0 &&
                    nvml_->clock(nvml_->handle, Nvml::kMemory, &memory) == 0 &&
                    nvml_->temperature(nvml_->handle, Nvml::kGpuTemperature, &temperature) == 0 &&
                    nvml_->power(nvml_->handle, &milliwatts) == 0 &&
                    nvml_->throttle_reasons(nvml_->handle, &reasons) == 0;
  if (!read) return std::nullopt;
  return CardState{static_cast<double>(sm), static_cast<double>(memory),
                   static_cast<double>(temperature),
                   static_cast<double>(nvml_->milliwatts_or(milliwatts)) * 1e-3, reasons};
}

}  // namespace pipesim::calibration
