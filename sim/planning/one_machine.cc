#include "sim/planning/one_machine.h"

#include <algorithm>
#include <queue>

namespace pipesim {

MachineBound one_machine_bound(std::vector<MachineJob> jobs) {
  std::ranges::sort(jobs, {}, &MachineJob::head);
  const auto shorter = [](const MachineJob& a, const MachineJob& b) { return a.tail < b.tail; };
  std::priority_queue<MachineJob, std::vector<MachineJob>, decltype(shorter)> ready(shorter);
  double time = 0;
  MachineBound bound;
  for (auto next = jobs.begin(); next != jobs.end() || !ready.empty();) {
    if (ready.empty()) time = std::max(time, next->head);
    for (; next != jobs.end() && next->head <= time; ++next) ready.push(*next);
    MachineJob job = ready.top();
    ready.pop();
    const bool interrupted = next != jobs.end() && next->head < time + job.seconds;
    const double until = interrupted ? next->head : time + job.seconds;
    job.seconds -= until - time;
    time = until;
    if (interrupted && job.seconds > 0) {
      ready.push(job);
    } else {
      if (time + job.tail > bound.seconds) bound = {time + job.tail, job.tail};
    }
  }
  return bound;
}

}  // namespace pipesim
