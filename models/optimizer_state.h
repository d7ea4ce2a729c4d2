// Adam's state of a parameter, its precision and its place: Megatron-LM's precision-aware optimizer
// (--use-precision-aware-optimizer) and its states on the host (--optimizer-cpu-offload).
//
// The update computes in fp32 whatever is stored. Pure values; bytes a parameter.
#pragma once

namespace pipesim {

struct OptimizerState {
  double main_params = 4;  // the copy that is updated, from which weights are cast; in fp32 none
  double exp_avg = 4;
  double exp_avg_sq = 4;
  // Only the lower 16 bits of an fp32 copy of bf16 weights are kept: the upper ones are the weight
  // (Transformer Engine's store_param_remainders). `main_params` is 2 then.
  bool remainders = false;
  // Gradients of 16 bits are read as they are; without it a step first makes them fp32.
  bool reads_16_bit_gradients = false;
  double host_fraction =
      0;  // of the parameters: their states stand on the host, which updates them
  bool overlaps_host = false;  // copies of gradients and weights run beside the host's update
  // States on the host come to the GPU for its update and go back (MindSpeed's swap_optimizer).
  bool swapped = false;

  [[nodiscard]] double bytes() const { return main_params + exp_avg + exp_avg_sq; }
  [[nodiscard]] double device_bytes() const { return (1 - host_fraction) * bytes(); }
  // The part of the parameters that the GPU updates.
  [[nodiscard]] double device_updates() const { return swapped ? 1 : 1 - host_fraction; }
  // Beside the states a host that updates always keeps a gradient in fp32 for each of its
  // parameters. In Megatron-LM's HybridDeviceOptimizer it is a pinned copy of as many numbers.
  [[nodiscard]] double host_bytes() const { return host_fraction * (bytes() + (swapped ? 0 : 4)); }
};

}  // namespace pipesim
