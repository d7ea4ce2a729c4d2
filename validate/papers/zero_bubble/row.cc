#include "validate/papers/zero_bubble/row.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/scenario/read_model.h"

namespace pipesim::zero_bubble {
namespace {

struct Name {
  const char* paper;
  const char* schedule;
};
constexpr std::array<Name, 7> kNames{{{"1F1B", "1f1b"},
                                      {"1F1B-I", "interleaved-1f1b"},
                                      {"ZB-H1", "zb-h1"},
                                      {"ZB-H2", "zb-h2"},
                                      {"ZB-1p", "zb-1p"},
                                      {"ZB-2p", "zb-2p"},
                                      {"ZB-V", "zb-v"}}};

int number(const YamlValue& value, int most) { return static_cast<int>(value.integer(1, most)); }

constexpr int kMostDevices = 1 << 16;
constexpr int kMostBatch = 1 << 20;

}  // namespace

std::vector<ModelRow> read_models(YamlMap& root) {
  std::vector<ModelRow> models;
  const auto rows = root.find("table3_models");
  if (!rows) return models;
  for (const YamlValue& each : rows->list()) {
    YamlMap map(each);
    ModelRow row;
    row.model = map.require("model", "a name").text();
    row.micro_batch = number(map.require("b", "micro batch size"), kMostBatch);
    if (const auto counts = map.find("m")) {
      for (const YamlValue& m : counts->list()) row.microbatches.push_back(number(m, kMostBatch));
    }
    models.push_back(row);
  }
  return models;
}

std::string Row::text() const {
  return fmt::format("{} p={} m={} b={} {}", model, devices, microbatches, micro_batch, schedule);
}

Row read_row(const YamlValue& value, YamlMap& map, const std::vector<ModelRow>& models) {
  Row row;
  row.where = value.where();
  row.model = map.require("model", "a model's name").text();
  if (const auto schedule = map.find("schedule")) row.schedule = schedule->text();
  const auto devices = map.find("p");
  row.devices = number(devices ? *devices : map.require("gpus", "devices"), kMostDevices);
  row.microbatches = number(map.require("m", "microbatches"), kMostBatch);
  const auto of_model = std::ranges::find(models, row.model, &ModelRow::model);
  if (const auto batch = map.find("b")) {
    row.micro_batch = number(*batch, kMostBatch);
  } else if (of_model != models.end()) {
    row.micro_batch = of_model->micro_batch;
  } else {
    value.fail("no micro batch size 'b' here or in table3_models");
  }
  return row;
}

Run run_of(const Row& row) {
  Run run;
  std::string name = row.model;
  for (char& letter : name) letter = letter == 'B' ? 'b' : letter;
  run.model = find_model("zb-" + name, row.where);
  const bool halved = row.schedule.ends_with('*');
  const std::string called = row.schedule.substr(0, row.schedule.size() - (halved ? 1 : 0));
  const auto* const found =
      std::ranges::find_if(kNames, [&called](const Name& each) { return called == each.paper; });
  if (found == kNames.end()) throw InputError(row.where, "no schedule is called " + called);
  run.schedule = found->schedule;
  run.microbatches = halved ? 2 * row.microbatches : row.microbatches;
  run.split = {.count_embedding = true, .count_loss = true};
  if (run.schedule == "zb-v") run.chunks = 2;
  if (run.schedule == "interleaved-1f1b") run.chunks = (run.model.num_layers + 2) / row.devices;
  run.context.micro_batch_size = halved ? std::max(1, row.micro_batch / 2) : row.micro_batch;
  run.context.seq_length = run.model.max_position_embeddings;
  run.context.flash_attention = false;
  run.context.dropout = true;
  run.state.gradients_in_fp32 = false;
  return run;
}

}  // namespace pipesim::zero_bubble
