// How the SimGrid engine sees a GPU, and changes of its speed.
#pragma once

namespace pipesim {

enum class GpuModel {
  kTimer,  // an undisturbed clock: compute takes its seconds
  // A SimGrid host: compute is an execution that messages, speed profiles and power see.
  //
  // Messages that flow out of a GPU take Cluster::message_share of it from compute, and messages
  // that flow in take it again. Several in one direction take it once, because they share the copy
  // engine as they share the link. Copies to and from the host likewise take Cluster::copy_share.
  // Each is a share of the GPU's speed at the time; compute keeps at least a millionth. Energy is
  // idle power until the last task ends. The difference to busy power counts for the share of that
  // time that compute or messages use the GPU.
  kHost,
};

// From `at_seconds` on, the GPU of `rank` runs at `factor` of its speed; 0 stops it.
struct SpeedChange {
  int rank = 0;
  double at_seconds = 0;
  double factor = 1;
};

}  // namespace pipesim
