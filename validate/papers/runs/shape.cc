#include "validate/papers/runs/shape.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex>

#include "sim/read/model.h"

namespace pipesim::runs {
namespace {

// "96 layers", or "hidden 12288", within a model's name.
std::optional<int> size_in_name(const std::string& name, const std::string& word) {
  std::smatch found;
  const std::regex before("([0-9]{1,7})(k?) " + word);
  const std::regex behind(word + " ([0-9]{1,7})(k?)");
  if (std::regex_search(name, found, before) || std::regex_search(name, found, behind)) {
    return std::stoi(found[1]) * (found[2].length() > 0 ? 1000 : 1);
  }
  return std::nullopt;
}

std::optional<double> billions_in_name(const std::string& name) {
  std::smatch found;
  static const std::regex kBillions("([0-9]+(\\.[0-9]+)?) ?[Bb]\\b");
  if (!std::regex_search(name, found, kBillions)) return std::nullopt;
  return std::stod(found[1]);
}

// Not GPT3-20B of gpt3-175b.
bool is_of_size(const std::string& known, const std::optional<double>& billions) {
  const auto of_known = billions_in_name(known);
  return !of_known || !billions || *of_known == *billions;
}

// The longest name of the catalogue that the row's begins with; or none.
std::string known_model(const std::string& written, const Rules& rules) {
  const std::string name = plain(written);
  for (const auto& [alias, known] : rules.models) {
    if (name.starts_with(plain(alias)) && is_of_size(known, billions_in_name(written))) {
      return known;
    }
  }
  std::string best;
  for (const Transformer& model : catalogue_models()) {
    const bool begins = name.starts_with(plain(model.name));
    if (begins && model.name.size() > best.size()) best = model.name;
  }
  return best;
}

struct Sizes {
  std::optional<int> layers, hidden, heads, kv_heads, ffn, vocab;
};

Sizes sizes_of(const Row& row, const std::string& name) {
  const auto either = [&](const char* key, const char* word) {
    const auto stated = row.size(key);
    return stated ? stated : size_in_name(name, word);
  };
  return {either("layers", "layers"),         either("hidden", "hidden"), either("heads", "heads"),
          either("kv_heads", "query groups"), either("ffn", "ffn"),       either("vocab", "vocab")};
}

// Megatron-LM makes it divide by 128 x tensor ranks.
int padded(int vocabulary, int tensor) {
  const int multiple = 128 * tensor;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

// By 12 h^2 parameters a layer and a tied matrix.
std::optional<int> layers_by_size(const Row& row, const std::string& name, const Sizes& sizes,
                                  int stages) {
  auto billions = row.number("params_B");
  if (!billions) billions = billions_in_name(name);
  if (!billions || !sizes.hidden || !sizes.vocab || sizes.ffn) return std::nullopt;
  const double hidden = *sizes.hidden;
  const double layers = (1e9 * *billions - hidden * *sizes.vocab) / (12 * hidden * hidden);
  const int of_stage = static_cast<int>(std::lround(layers / stages));
  return of_stage > 0 ? std::optional(of_stage * stages) : std::nullopt;
}

// Keys that replace the catalogue's sizes, or all of them.
std::string size_keys(const Sizes& sizes, int tensor) {
  std::string keys;
  const auto add = [&keys](const char* key, const std::optional<int>& value) {
    if (value) keys += fmt::format(", {}: {}", key, *value);
  };
  add("num_layers", sizes.layers);
  add("hidden_size", sizes.hidden);
  add("num_attention_heads", sizes.heads);
  add("num_query_groups", sizes.kv_heads);
  add("ffn_hidden_size", sizes.ffn);
  if (sizes.vocab) add("vocab_size", padded(*sizes.vocab, tensor));
  return keys;
}

Named of_sizes(const Row& row, const std::string& name, const Settings& settings, Sizes sizes,
               int tensor, int stages) {
  Named named;
  if (!sizes.vocab) sizes.vocab = settings.vocabulary;
  if (!sizes.layers) sizes.layers = layers_by_size(row, name, sizes, stages);
  const auto need = [&named](const char* what, const std::optional<int>& size) {
    if (!size && named.missing.empty()) named.missing = fmt::format("{} is not stated", what);
  };
  need("hidden", sizes.hidden);
  need("heads", sizes.heads);
  need("layers", sizes.layers);
  need("vocab", sizes.vocab);
  if (!named.missing.empty()) {
    named.missing += name.empty() ? "" : fmt::format(", and '{}' is no model we know", name);
    return named;
  }
  // An MLP of a size of its own is a gated one.
  const bool gated = sizes.ffn && *sizes.ffn != 4 * *sizes.hidden;
  named.layers = *sizes.layers;
  const double hidden = *sizes.hidden;
  named.output = *sizes.vocab / (gated ? 4 * hidden + 3.0 * *sizes.ffn : 12 * hidden);
  named.yaml =
      fmt::format("{{name: run, family: {}{}", gated ? "llama" : "gpt", size_keys(sizes, tensor));
  if (!gated)
    named.yaml += fmt::format(", max_position_embeddings: {}", row.size("seq").value_or(2048));
  if (const auto tied = row.flag("tied")) {
    named.yaml += fmt::format(", untie_embeddings_and_output_weights: {}", !*tied);
  }
  named.yaml += "}";
  return named;
}

// A stage takes layers until the parameters so far exceed its share of all; those of the output
// count, whose stage is the last.
std::vector<int> cumulative(int layers, double output, int stages) {
  std::vector<int> of_stage(stages, 0);
  int stage = 0;
  for (int layer = 1; layer <= layers; ++layer) {
    ++of_stage[stage];
    if (layer > (layers + output) * (stage + 1) / stages) stage = std::min(stage + 1, stages - 1);
  }
  return of_stage;
}

}  // namespace

std::string plain(const std::string& text) {
  std::string letters;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0) letters += static_cast<char>(std::tolower(code));
  }
  return letters;
}

Named model_of(const Row& row, const Rules& rules, const Settings& settings, int tensor,
               int stages) {
  const std::string name = row.text("model");
  const Sizes sizes = sizes_of(row, name);
  if (sizes.hidden) return of_sizes(row, name, settings, sizes, tensor, stages);
  if (name.empty()) return {.missing = "model is not stated"};
  const std::string known = known_model(name, rules);
  if (known.empty()) return {.missing = fmt::format("'{}' is no model we know", name)};
  const Transformer model = find_model(known, {});
  Named named;
  named.layers = sizes.layers.value_or(model.num_layers);
  named.moe = model.experts.has_value();
  Sizes changed = sizes;
  if (!changed.vocab) changed.vocab = model.vocab_size;
  named.yaml = fmt::format("{{base: {}{}}}", known, size_keys(changed, tensor));
  return named;
}

std::string placing(const Row& row, const Settings& settings, const Named& model, int stages) {
  if (stages > 1 && settings.layers == "cumulative") {
    return fmt::format(", num_layers_per_stage: [{}]",
                       fmt::join(cumulative(model.layers, model.output, stages), ", "));
  }
  const int layers = model.layers;
  const bool counted = row.flag("account_for_embedding_in_pipeline_split").value_or(false);
  const bool loss = row.flag("account_for_loss_in_pipeline_split").value_or(false);
  const bool even = layers % stages == 0;
  const bool with_ends = (layers + 2) % stages == 0 && layers + 2 > stages;
  if (stages == 1 || (even && !counted && !loss)) return "";
  if (with_ends) {
    return ", account_for_embedding_in_pipeline_split: true, "
           "account_for_loss_in_pipeline_split: true";
  }
  std::vector<int> of_stage(stages, layers / stages);
  if (settings.layers == "uniform") {
    for (int stage = 0; stage < layers % stages; ++stage) ++of_stage[stage];
  } else {
    const int most = (layers + stages - 1) / stages;
    int left = layers;
    for (int& each : of_stage) {
      each = std::min(most, left);
      left -= each;
    }
  }
  return fmt::format(", num_layers_per_stage: [{}]", fmt::join(of_stage, ", "));
}

}  // namespace pipesim::runs
