#include "validate/papers/zero_bubble/row.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/read/model.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"

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

// "ZB-2p*" is ZB-2p with half the micro batch.
std::string without_star(const std::string& name) {
  return name.substr(0, name.size() - (name.ends_with('*') ? 1 : 0));
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> names;
    for (const char* star : {"", "*"}) {
      for (const Name& each : kNames) names.push_back(std::string(each.paper) + star);
    }
    return names;
  }();
  return kAll;
}

Transformer model_of(const std::string& written, const Location& where) {
  std::string name = written;
  for (char& letter : name) letter = letter == 'B' ? 'b' : letter;
  return find_model("zb-" + name, where);
}

std::vector<ModelRow> models_of(const YamlValue& rows) {
  std::vector<ModelRow> models;
  for (const YamlValue& each : rows.list()) {
    YamlMap map(each);
    ModelRow row;
    row.model = map.require("model", "a name").text();
    row.micro_batch = number(map.require("b", "micro batch size"), kMostBatch);
    if (const auto counts = map.find("m")) {
      for (const YamlValue& m : counts->list()) row.microbatches.push_back(number(m, kMostBatch));
    }
    finish_row(map, {"layers", "heads", "hidden", "seq", "gpus"});
    models.push_back(row);
  }
  return models;
}

}  // namespace

std::vector<ModelRow> read_models(YamlMap& root) {
  if (const auto rows = root.find("table3_models")) return models_of(*rows);
  const std::string path = paper_file(data_folder("papers"), "zero_bubble");
  const YamlSource source = YamlSource::from_file(path, {path, 1, 1, ""});
  YamlMap own(source.root());
  return models_of(own.require("table3_models", "the models' micro batches"));
}

void check_model(const std::string& name, const Location& where) { (void)model_of(name, where); }

std::string Row::text() const {
  return fmt::format("{} p={} m={} b={} {}", model, devices, microbatches, micro_batch, schedule);
}

Row read_row(const YamlValue& value, YamlMap& map, const std::vector<ModelRow>& models) {
  Row row;
  const YamlValue model = map.require("model", "a model's name");
  row.where = model.where();
  row.model = model.text();
  check_model(row.model, row.where);
  if (const auto schedule = map.find("schedule")) row.schedule = schedule->choice(schedule_names());
  const auto devices = map.find("p");
  const auto gpus = map.find("gpus");
  row.devices = number(devices ? *devices : map.require("gpus", "devices"), kMostDevices);
  if (gpus && number(*gpus, kMostDevices) != row.devices) {
    gpus->fail(fmt::format("the paper's runs have a stage on every GPU: expected {}", row.devices));
  }
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

std::string correct_misprint(Row& row, const std::vector<ModelRow>& models) {
  const auto of = std::ranges::find(models, row.model, &ModelRow::model);
  if (of == models.end() || of->microbatches.empty()) return {};
  const std::vector<int>& known = of->microbatches;
  if (std::ranges::find(known, row.microbatches) != known.end()) return {};
  const int meant = known[known.size() / 2];
  std::string note = fmt::format("printed as m={}; ", row.microbatches);
  row.microbatches = meant;
  return note;
}

Run run_of(const Row& row) {
  Run run;
  run.model = model_of(row.model, row.where);
  const bool halved = row.schedule.ends_with('*');
  const std::string called = without_star(row.schedule);
  const auto* const found =
      std::ranges::find_if(kNames, [&called](const Name& each) { return called == each.paper; });
  if (found == kNames.end()) throw LogicError("no schedule is called " + called);
  run.schedule = found->schedule;
  run.microbatches = halved ? 2 * row.microbatches : row.microbatches;
  run.split = {.count_embedding = true, .count_loss = true};
  if (run.schedule == "zb-v") run.chunks = 2;
  if (run.schedule == "interleaved-1f1b") {
    run.chunks = std::max(2, (run.model.num_layers + 2) / row.devices);
  }
  run.context.micro_batch_size = halved ? std::max(1, row.micro_batch / 2) : row.micro_batch;
  run.context.seq_length = run.model.max_position_embeddings;
  run.context.flash_attention = false;
  run.context.dropout = true;
  run.state.gradients_in_fp32 = false;
  return run;
}

}  // namespace pipesim::zero_bubble
