#include "sim/planning/player.h"

namespace pipesim {

Player::Player(const Problem& problem, Unit unit)
    : objective_(problem.objective),
      unit_(unit),
      columns_(problem.placement.chunks()),
      chunks_(problem.shape.devices * columns_),
      devices_(problem.shape.devices),
      arrival_(chunks_.size(), problem.shape.microbatches + 8),
      backwards_(devices_.size(), columns_ * problem.shape.microbatches),
      lists_(devices_.size()) {
  const Placement& place = problem.placement;
  const auto row = [&](int vs) {
    return vs < 0 ? -1 : static_cast<int>(place.device(vs) * columns_) + place.chunk(vs);
  };
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageCost& cost = problem.stage(vs);
    Chunk& chunk = chunks_[row(vs)];
    chunk = {.forward = unit(cost.forward),
             .backward = unit(cost.backward_input),
             .weight = unit(cost.backward_weight),
             .activation = cost.activation.value(),
             .weight_stash = cost.weight_stash.value(),
             .device = place.device(vs),
             .number = place.chunk(vs),
             .upstream = row(place.upstream(vs)),
             .downstream = row(place.downstream(vs) < 0 ? vs : place.downstream(vs)),
             .row = row(vs),
             .microbatches = problem.shape.microbatches};
    devices_[chunk.device].work +=
        chunk.microbatches * (chunk.forward + chunk.backward + chunk.weight);
  }
  for (auto& list : lists_) list.reserve(3 * backwards_.columns());
  set_messages(problem);
}

void Player::set_messages(const Problem& problem) {
  const Placement& place = problem.placement;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    Chunk& sender = chunk(place.device(vs), place.chunk(vs));
    const auto seconds = [&](int to) { return to < 0 ? 0 : unit_(problem.transfer(vs, to)); };
    sender.to_downstream = seconds(place.downstream(vs));
    sender.to_upstream = seconds(place.upstream(vs));
  }
}

void Player::reset() {
  for (Chunk& chunk : chunks_) chunk.f = chunk.b = chunk.w = 0;
  for (Device& device : devices_) {
    device.clock = device.first_start = 0;
    device.idle = -device.spare;
    device.least_span = device.work + device.spare;
    device.b = device.w = 0;
    device.started = false;
  }
  for (auto& list : lists_) list.clear();
  most_idle_ = 0;
}

PlanTime Player::finish() {
  PlanTimer timer(objective_);
  for (int d = 0; d < devices(); ++d) {
    while (device(d).owed() > 0) run_weight(d);
    timer.add(device(d).first_start, device(d).clock);
  }
  return timer.time();
}

double Player::most_work() const {
  return std::ranges::max_element(devices_, {}, &Device::work)->work;
}

}  // namespace pipesim
