#include "sim/prepare/memory_room.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "models/vocabulary_share.h"
#include "sim/case/make_case.h"
#include "sim/case/stage_costs.h"

namespace pipesim {
namespace {

using Held = std::vector<double>;
enum Part : size_t { kActivation, kStash, kCheckpoint, kParts };

// The moments of which none holds less of everything than another.
class Moments {
 public:
  explicit Moments(int chunks) : now_(static_cast<size_t>(chunks) * kParts + 1) {}

  double& now(int chunk, Part part) { return now_[static_cast<size_t>(chunk) * kParts + part]; }
  double& shares() { return now_.back(); }

  void note() {
    const auto within = [](const Held& one, const Held& other) {
      return std::equal(one.begin(), one.end(), other.begin(), std::less_equal<>());
    };
    const auto above =
        std::ranges::find_if(all_, [&](const Held& each) { return within(now_, each); });
    if (above != all_.end()) {
      std::iter_swap(all_.begin(), above);  // what comes next is likely near
      return;
    }
    std::erase_if(all_, [&](const Held& each) { return within(each, now_); });
    all_.push_back(now_);
  }
  [[nodiscard]] const std::vector<Held>& all() const { return all_; }

 private:
  Held now_;
  std::vector<Held> all_;
};

void acquire(const Program& program, int device, const Pass& pass, Moments& moments) {
  const bool again = work_of(pass.kind).again;
  const int vs = program.placement().virtual_stage(device, pass.chunk);
  const bool whole = again || !program.recomputes(vs);
  if (again) --moments.now(pass.chunk, kCheckpoint);
  ++moments.now(pass.chunk, whole ? kActivation : kCheckpoint);
}

void release(const Pass& pass, Moments& moments) {
  --moments.now(pass.chunk, pass.kind == PassKind::kW ? kStash : kActivation);
  if (pass.kind == PassKind::kB) ++moments.now(pass.chunk, kStash);
}

std::vector<Held> moments_of(const Program& program, int device) {
  Moments moments(program.placement().chunks());
  for (const Pass& pass : program.passes(device)) {
    program.visit_parts(pass, [&](const Pass& part) {
      if (is_vocabulary(part.kind)) {
        if (part.kind == PassKind::kS) ++moments.shares();
        if (part.kind == PassKind::kT) --moments.shares();
      } else if (work_of(part.kind).backward()) {
        release(part, moments);
      } else {
        acquire(program, device, part, moments);
      }
      moments.note();
    });
  }
  return moments.all();
}

// Bytes that passes of a chunk keep of these numbers.
Bytes bytes_of(const Held& held, int chunk, const StageMemory& memory) {
  const double* numbers = held.data() + static_cast<size_t>(chunk) * kParts;
  return numbers[kActivation] * memory.activation + numbers[kStash] * memory.weight_stash +
         numbers[kCheckpoint] * memory.checkpoint;
}

}  // namespace

MemoryRoom::MemoryRoom(const Outline& outline, Bytes capacity)
    : outline_(outline),
      model_(outline.scenario->modelled->model, *outline.context,
             state_on(outline.placement, outline.scenario->modelled->state)),
      shape_(shape_of(outline)),
      recompute_chunks_(recompute_chunks_of(outline.choice)),
      capacity_(outline.placement.devices(), capacity) {
  const Transformer& model = outline.scenario->modelled->model;
  if (outline.context->vocabulary_devices > 0) share_ = share_activation(model, *outline.context);
  if (const auto* limit = std::get_if<Bytes>(&outline.choice.memory_limit)) limit_ = *limit;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    // The first of each kind.
    if (count_layers(model, 0, layer)[layer_kind(model, layer)] > 0) continue;
    const StageLayers one{.first = layer, .layers = 1};
    const DeviceMemory held = model_.device({&one, 1});
    const StageMemory kept = model_.stage(one);
    layer_ = std::min(layer_, held.weights + held.gradients + held.optimizer);
    // In a chunk that recomputes, another layer adds its checkpoint alone.
    least_.activation =
        std::min(least_.activation, recompute_chunks_ > 0 ? kept.checkpoint : kept.activation);
    least_.weight_stash = std::min(least_.weight_stash, kept.weight_stash);
    least_.checkpoint = std::min(least_.checkpoint, kept.checkpoint);
  }
}

void MemoryRoom::observe(const Program& program) {
  moments_.clear();
  means_.clear();
  for (size_t device = 0; device < capacity_.size(); ++device) {
    moments_.push_back(moments_of(program, static_cast<int>(device)));
    const std::vector<Held>& all = moments_.back();
    Held mean(all.front().size());
    for (const Held& held : all) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += held[i] / static_cast<double>(all.size());
    }
    means_.push_back(std::move(mean));
  }
}

bool MemoryRoom::fits(int device, std::span<const StageLayers> chunks) {
  const Bytes kept_most = kept(device, chunks);
  if (limit_ && kept_most > *limit_) return false;
  return beside(device, chunks).total() + kept_most <= capacity_[device];
}

DeviceMemory MemoryRoom::beside(int device, std::span<const StageLayers> chunks) const {
  DeviceMemory held = model_.device(chunks);
  held.weights += older_weights(outline_, device, chunks);
  return held;
}

int MemoryRoom::most_more(int device, std::span<const StageLayers> chunks,
                          std::span<const int> open) {
  if (open.empty()) return 0;
  const DeviceMemory held = beside(device, chunks);
  // Temporaries may become fewer.
  const Bytes left = capacity_[device] - (held.total() - held.buffers);
  double most = std::numeric_limits<int>::max();
  note_stages(chunks);
  const auto bound_by = [&](const Held& held) {
    Bytes least(std::numeric_limits<double>::infinity());
    for (const int chunk : open) least = std::min(least, bytes_of(held, chunk, least_));
    most = std::min(most, (left - bytes(held)) / (layer_ + shape_.per_unit(least)));
  };
  for (const Held& held : moments_[device]) bound_by(held);
  // Chunks that weigh least at one moment or another all weigh something in the mean.
  bound_by(means_[device]);
  return most < 0 ? 0 : static_cast<int>(most);
}

void MemoryRoom::note_stages(std::span<const StageLayers> chunks) {
  stages_.clear();
  for (const StageLayers& chunk : chunks) {
    StageMemory kept = model_.stage(chunk);
    kept.activation = kept.until_backward(std::cmp_less(stages_.size(), recompute_chunks_));
    stages_.push_back(kept);
  }
}

// Bytes of the stages noted last.
Bytes MemoryRoom::bytes(const Held& held) const {
  Bytes sum;
  for (size_t chunk = 0; chunk < stages_.size(); ++chunk) {
    sum += bytes_of(held, static_cast<int>(chunk), stages_[chunk]);
  }
  return shape_.per_unit(sum) + held.back() * share_;
}

// The most that passes keep of these layers.
Bytes MemoryRoom::kept(int device, std::span<const StageLayers> chunks) {
  note_stages(chunks);
  Bytes most;
  for (const Held& held : moments_[device]) most = std::max(most, bytes(held));
  return most;
}

}  // namespace pipesim
