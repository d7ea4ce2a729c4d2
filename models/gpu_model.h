// How the SimGrid engine sees a GPU, and changes of its speed.
#pragma once

namespace pipesim {

enum class GpuModel {
  kTimer,  // an undisturbed clock: compute takes its seconds
  // A SimGrid host: compute is an execution that messages, speed profiles and power see.
  //
  // While messages flow out of a GPU they take Cluster::message_share of it from compute, while
  // messages flow in they take it again; several in one direction take it once, because they share
  // the copy engine as they share the link. Copies to and from the host likewise take
  // Cluster::copy_share. What they take is a share of the speed that the GPU has
  // at the time. Compute keeps at least a millionth. Energy: idle power for the time until the last
  // task ends, and the difference to busy power for the share of that time that the GPU is used, by
  // compute or messages.
  kHost,
};

// From `at_seconds` on, the GPU of `rank` runs at `factor` of its speed; 0 stops it.
struct SpeedChange {
  int rank = 0;
  double at_seconds = 0;
  double factor = 1;
};

}  // namespace pipesim
