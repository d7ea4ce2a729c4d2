#include "sim/runtime/computed_work.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "sim/core/error.h"
#include "sim/pipeline/dependencies.h"

namespace pipesim::runtime {
namespace {

std::string why_not(const Case& made, const Program& program) {
  if (!made.layout) return "the scenario has no model";
  const LayerContext& context = *made.context;
  if (context.tensor > 1 || context.context > 1) return "its layers are divided over ranks";
  if (!context.flash_attention || !context.causal) return "it computes fused causal attention";
  if (context.dropout) return "it computes no dropout";
  if (context.recompute != RecomputeGranularity::kNone) return "its layers are computed again";
  if (is_sharded(program.vocabulary())) return "its vocabulary is divided over the devices";
  if (program.shape().splits > 1) return "its sequences are divided";
  if (program.copies() != nullptr) return "its activations are copied to the host";
  return why_not_small(made.scenario->modelled->model);
}

class ComputedWork final : public Work {
 public:
  ComputedWork(const Case& made, const Program& program, int device)
      : program_(program),
        place_(program.placement()),
        ids_(program),
        device_(device),
        model_(small_model_of(made, program)) {
    for (int chunk = 0; chunk < place_.chunks(device); ++chunk) {
      const int vs = place_.virtual_stage(device, chunk);
      layers_.push_back(made.layout->stages[place_.model_stage(vs)]);
      warm_up(layers_.back());
    }
    for (const StageLayers& layers : layers_) stages_.emplace_back(model_, layers, ledger_);
  }

  void run(const Pass& pass, const Board& board) override {
    program_.visit_parts(pass, [&](const Pass& part) { run_part(part, board); });
  }

  void start_copy(const Copy& /*copy*/, bool /*out*/) override { throw LogicError("no copies"); }
  void end_copy(const Copy& /*copy*/, bool /*out*/) override { throw LogicError("no copies"); }

  std::span<const std::byte> bytes(NoteId note) override {
    sent_ = std::move(made_.at(note));
    made_.erase(note);
    return std::as_bytes(std::span(sent_));
  }

  void close(DeviceRecord& record) override {
    record.peak_bytes = static_cast<double>(ledger_.peak());
    for (const StageMath& stage : stages_) {
      record.gradients.insert(record.gradients.end(), stage.gradients().begin(),
                              stage.gradients().end());
    }
    if (ledger_.held() != 0) throw LogicError("activations are left when all passes have run");
  }

 private:
  void run_part(const Pass& pass, const Board& board) {
    StageMath& stage = stages_[pass.chunk];
    const int vs = place_.virtual_stage(device_, pass.chunk);
    if (pass.kind == PassKind::kF) {
      make(PassKind::kF, vs, pass, stage.forward(pass.microbatch, input(pass, vs, board)));
    } else if (is_backward(pass.kind)) {
      make(PassKind::kB, vs, pass, stage.backward(pass.microbatch, input(pass, vs, board)));
    }
    if (pass.kind == PassKind::kW || pass.kind == PassKind::kBW) {
      stage.weight_gradients(pass.microbatch);
    }
  }

  // Libraries are loaded, pages are there, clocks are up.
  void warm_up(const StageLayers& layers) {
    Ledger unseen;
    StageMath stage(model_, layers, unseen);
    const std::vector<float> zeros(model_.tokens() * model_.shape.hidden_size);
    (void)stage.forward(0, zeros);
    (void)stage.backward(0, zeros);
    stage.weight_gradients(0);
  }

  std::vector<float> input(const Pass& pass, int vs, const Board& board) {
    const StagePass source = source_of(place_, {pass.kind, vs});
    if (!source.exists() || source.vs == vs) return {};
    const NoteId data = ids_.data(ids_.message(source.kind, source.vs, pass.microbatch));
    if (place_.device(source.vs) == device_) {
      auto made = made_.extract(data);
      return std::move(made.mapped());
    }
    const auto bytes = board.bytes(data);
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }

  void make(PassKind kind, int vs, const Pass& pass, std::vector<float> result) {
    if (!result.empty()) {
      made_[ids_.data(ids_.message(kind, vs, pass.microbatch))] = std::move(result);
    }
  }

  const Program& program_;
  const Placement& place_;
  NoteIds ids_;
  int device_;
  SmallModel model_;
  Ledger ledger_;
  std::vector<StageLayers> layers_;  // by chunk, as `stages_`
  std::vector<StageMath> stages_;
  std::map<NoteId, std::vector<float>> made_;
  std::vector<float> sent_;
};

}  // namespace

SmallModel small_model_of(const Case& made, const Program& program) {
  if (const std::string reason = why_not(made, program); !reason.empty()) {
    throw InfeasibleError("passes cannot be computed: " + reason);
  }
  return {made.scenario->modelled->model, made.context->micro_batch_size, made.context->seq_length};
}

std::unique_ptr<Work> make_computed_work(const Case& made, const Program& program, int device) {
  return std::make_unique<ComputedWork>(made, program, device);
}

std::size_t message_bytes_of(const SmallModel& model) {
  return model.tokens() * model.shape.hidden_size * sizeof(float);
}

std::vector<float> gradients_of_one_process(const SmallModel& model, int microbatches) {
  Ledger ledger;
  StageMath all(model, {0, model.shape.num_layers, 0, true, true}, ledger);
  for (int unit = 0; unit < microbatches; ++unit) {
    (void)all.forward(static_cast<std::uint32_t>(unit), {});
    (void)all.backward(static_cast<std::uint32_t>(unit), {});
    all.weight_gradients(static_cast<std::uint32_t>(unit));
  }
  return all.gradients();
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

}  // namespace pipesim::runtime
