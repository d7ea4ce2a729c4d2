#include "validate/papers/paper_keys.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <string_view>

#include "sim/core/text.h"
#include "validate/papers/paper_data.h"

namespace pipesim {
namespace {

constexpr std::array<std::string_view, 12> kNotes{{"paper", "title", "source", "status", "hardware",
                                                   "setup", "note", "notes", "comment", "comments",
                                                   "url", "format"}};

bool is_note(const std::string& key, const YamlValue& value) {
  const bool named = std::ranges::any_of(kNotes, [&key](std::string_view note) {
    return key == note || key.ends_with(fmt::format("_{}", note));
  });
  if (!named || value.is_scalar() || value.is_null()) return named;
  if (!value.is_list()) return false;
  return std::ranges::all_of(value.list(), &YamlValue::is_scalar);
}

using Facts = std::map<std::string, std::vector<std::string>>;

const Facts& facts() {
  static const Facts kFacts{
      {"zero_bubble", {"mem_model_in_scripts"}},
      {"vocabulary_parallelism",
       {"table1_settings_1f1b", "table2_settings_vhalf", "table4_costs",
        "flops_formula_per_iteration", "other_text_numbers", "columns_order_for_lists",
        "csv_method_names"}},
      {"controllable_memory",
       {"table2_models", "table5_partial", "table5", "figure12_APPROX", "figure12", "other"}},
      {"pipeoffload",
       {"k_formula", "constants", "activation_bytes_per_layer", "table1_formulas",
        "fig1_slowdown_full_offload_1f1b_pct", "tp_comparison", "other_text"}},
      {"nemo", {}},
      {"simumax", {}}};
  return kFacts;
}

const std::vector<std::string>& facts_of(const std::string& paper) {
  static const std::vector<std::string> kNone;
  const auto found = facts().find(paper);
  return found == facts().end() ? kNone : found->second;
}

void allow_notes(YamlMap& map) {
  for (const auto& [written, value] : map.value().entries()) {
    std::string key = written;  // as keys are read
    std::ranges::replace(key, '-', '_');
    if (is_note(key, value)) (void)map.find(key);
  }
}

}  // namespace

void finish_row(YamlMap& map, std::initializer_list<const char*> facts) {
  for (const char* fact : facts) (void)map.find(fact);
  allow_notes(map);
  map.finish();
}

void finish_paper(YamlMap& root, const std::string& paper) {
  for (const std::string& fact : facts_of(paper)) (void)root.find(fact);
  allow_notes(root);
  root.finish();
}

std::vector<std::string> not_compared(const std::string& folder, const std::string& paper) {
  std::vector<std::string> found;
  if (facts_of(paper).empty() || !has_paper(folder, paper)) return found;
  const std::string path = paper_file(folder, paper);
  const YamlSource source = YamlSource::from_file(path, {path, 1, 1, ""});
  for (const auto& [key, value] : source.root().entries()) {
    if (std::ranges::find(facts_of(paper), key) != facts_of(paper).end()) found.push_back(key);
  }
  return found;
}

Printed read_printed(const YamlValue& value, double most) {
  if (value.is_null()) return {Printed::Kind::kNothing, 0};
  static const std::vector<std::string> kWords{"OOM", "SKIP"};
  const std::string text = value.text();
  const bool letters =
      std::ranges::all_of(text, [](unsigned char c) { return std::isalpha(c) != 0; });
  if (!letters) return {Printed::Kind::kNumber, value.number(0, most)};
  if (std::ranges::find(kWords, text) == kWords.end()) {
    value.fail(
        fmt::format("expected a number, OOM or SKIP, not '{}'{}", text, suggestion(text, kWords)));
  }
  return {text == "OOM" ? Printed::Kind::kOutOfMemory : Printed::Kind::kNothing, 0};
}

int microbatches_of(const YamlValue& batch, int data, int micro_batch) {
  constexpr long kMost = 1 << 16;
  const long global = batch.integer(1, 1L << 40);
  const long samples = 1L * data * micro_batch;
  if (global % samples != 0) {
    batch.fail(fmt::format("{} data-parallel ranks with microbatches of {} do not divide {}", data,
                           micro_batch, global));
  }
  if (global / samples > kMost) {
    batch.fail(fmt::format("{} microbatches, more than any published run has ({})",
                           global / samples, kMost));
  }
  return static_cast<int>(global / samples);
}

std::string doubt_of_passes(int devices, int chunks, int microbatches) {
  constexpr double kMost = 1 << 24;
  const double passes = 2.0 * devices * chunks * microbatches;
  if (passes <= kMost) return "";
  return fmt::format("{:.0f} passes in an iteration, more than any published run has ({:.0f})",
                     passes, kMost);
}

}  // namespace pipesim
