// A job's cluster in SimGrid: its hosts and links.
#pragma once

#include <memory>
#include <simgrid/s4u.hpp>
#include <vector>

#include "sim/engine/simgrid_dataflow.h"
#include "sim/engine/simgrid_module.h"

namespace pipesim::simgrid_module {

namespace s4u = ::simgrid::s4u;

// A host's flop/s. SimGrid cuts off the last `precision` flops of an execution: at this speed they
// are far below the resolution of its clock.
inline constexpr double kHostSpeed = 0x1p40;

// Everything that the runs of a job share: built once, inherited by fork.
struct Platform {
  explicit Platform(const Job& of);

  Job job;
  std::vector<double> rate;  // by class: units of payload per second of flow
  JobDataflow dataflow;
  double precision = 0;
  std::unique_ptr<s4u::Engine> engine;
  std::vector<s4u::Host*> hosts;
  std::vector<bool> host_changes_speed;

 private:
  void start_engine();
  void build_zone(double unit);
  void add_hosts(s4u::NetZone& zone);
  void add_routes(s4u::NetZone& zone, double unit);
};

}  // namespace pipesim::simgrid_module
