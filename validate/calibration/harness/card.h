// The measured GPU: its properties, and its state while it works.
//
// Properties come from CUDA; clocks, temperature, power and throttling from NVML, which is loaded
// at run time and only read: no setting of the card is ever changed. Without NVML the state is
// absent and `nvml_reason` says why. Errors: CudaError when the device cannot be used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

struct CardFacts {
  std::string name;
  std::string compute_capability;
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int devices = 0;  // of this machine
};

// The PCI bus of a device, as 0000:17:00.0.
[[nodiscard]] std::string bus_of(int device);

class Card {
 public:
  explicit Card(int device);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  [[nodiscard]] const CardFacts& facts() const { return facts_; }
  [[nodiscard]] const std::string& bus() const { return bus_; }
  [[nodiscard]] std::string driver_version() const;  // empty without NVML
  [[nodiscard]] const std::string& nvml_reason() const { return nvml_reason_; }
  [[nodiscard]] std::optional<CardState> state() const;
  [[nodiscard]] bool has_fp8() const { return capability_ >= 89; }

 private:
  struct Nvml;
  CardFacts facts_;
  std::string bus_;
  int capability_ = 0;  // 10 x major + minor
  std::unique_ptr<Nvml> nvml_;
  std::string nvml_reason_;
};

}  // namespace pipesim::calibration
