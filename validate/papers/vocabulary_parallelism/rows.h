// Rows of Tables 5 and 6: a method on a model, for every size of the vocabulary.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/transformer.h"
#include "sim/pipeline/vocabulary.h"
#include "sim/read/yaml.h"
#include "validate/papers/paper_keys.h"

namespace pipesim::vocabulary_parallelism {

inline constexpr std::array kVocabularies{32000, 64000, 128000, 256000};

struct MethodRow {
  std::string table;  // "Table 5"
  const char* schedule = "";
  const char* software = "";  // in the catalogue
  int chunks = 1;
  int gpus = 0;
  int seq = 0;
  std::string method;  // as the paper calls it
  VocabularyPlacement placement = VocabularyPlacement::kFirstLast;
  std::string model_name;  // in the catalogue
  Transformer model;       // but for its vocabulary
  std::string fault;       // why nothing of it is modelled; empty: it is
  // For every vocabulary, where the row has them.
  std::vector<Printed> peak_gb;
  std::vector<Printed> mfu_percent;

  [[nodiscard]] Transformer with_vocabulary(size_t i) const;
  [[nodiscard]] std::string text(size_t i) const;
};

// The row's printed number for a vocabulary, or nothing.
std::optional<double> number_at(const std::vector<Printed>& row, size_t vocabulary);

// InputError where a row is not as expected.
std::vector<MethodRow> read_rows(YamlMap& root);

}  // namespace pipesim::vocabulary_parallelism
