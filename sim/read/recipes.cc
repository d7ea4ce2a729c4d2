#include "sim/read/recipes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <tuple>

#include "sim/band/columns.h"
#include "sim/core/data_folder.h"
#include "sim/core/input_text.h"

namespace pipesim {
namespace {

struct Size {
  const char* column;
  int Recipe::*value;
};
constexpr std::array kSizes{
    Size{"gpus", &Recipe::gpus},     Size{"seq_length", &Recipe::seq_length},
    Size{"tensor", &Recipe::tensor}, Size{"context", &Recipe::context},
    Size{"expert", &Recipe::expert}, Size{"pipeline", &Recipe::pipeline},
    Size{"chunks", &Recipe::chunks}, Size{"micro_batch", &Recipe::micro_batch}};
constexpr std::array kWords{"id", "model", "gpu", "precision", "recompute"};

std::vector<const char*> columns() {
  std::vector<const char*> all(kWords.begin(), kWords.end());
  for (const Size& size : kSizes) all.push_back(size.column);
  return all;
}

Recipe recipe_of(const ColumnsRow& row) {
  const auto recompute = recompute_from(row.fields[4]);
  if (!recompute) {
    throw InputError(row.where, fmt::format("expected a recomputation, not '{}'", row.fields[4]));
  }
  Recipe recipe{.id = row.fields[0],
                .model = row.fields[1],
                .gpu = row.fields[2],
                .precision = row.fields[3],
                .recompute = *recompute};
  for (size_t i = 0; i < kSizes.size(); ++i) {
    recipe.*kSizes[i].value =
        static_cast<int>(positive_number(row.fields[kWords.size() + i], row.where));
  }
  return recipe;
}

}  // namespace

std::string shape_of(const Transformer& model) {
  return fmt::format("{}x{}x{}{}", model.num_layers, model.hidden_size, model.ffn_hidden_size,
                     model.experts ? fmt::format("x{}", model.experts->num_experts) : "");
}

std::vector<Recipe> catalogue_recipes() {
  const std::string path = data_folder("catalog") + "/recipes.csv";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  std::vector<Recipe> all;
  for (const ColumnsRow& row : read_columns(read_input(path, {}), path, columns())) {
    all.push_back(recipe_of(row));
  }
  return all;
}

std::vector<Recipe> recipes_for(const Transformer& model, const Gpu& gpu,
                                const std::string& precision, int seq_length, int gpus) {
  std::vector<Recipe> all = catalogue_recipes();
  const std::string& name = gpu.like.empty() ? gpu.name : gpu.like;
  std::erase_if(
      all, [&](const Recipe& each) { return each.model != shape_of(model) || each.gpu != name; });
  const auto ratio = [](int a, int b) { return std::abs(std::log(1.0 * a / b)); };
  std::ranges::stable_sort(all, {}, [&](const Recipe& each) {
    return std::tuple(each.precision != precision, ratio(each.seq_length, seq_length),
                      ratio(each.gpus, gpus));
  });
  return all;
}

}  // namespace pipesim
