#include "sim/read/hf_blocks.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "models/transformer.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

constexpr int kMlpStep = 256;  // what sizes by a factor are rounded up to
constexpr double kLargestShare = 1 << 10;

bool says_nothing(const YamlValue& value) {
  if (value.is_null()) return true;
  return value.is_scalar() && value.node().Scalar() == "false";
}

std::optional<YamlValue> given(YamlMap& map, const char* key) {
  auto value = map.find(key);
  return value && value->is_null() ? std::nullopt : value;
}

// A part of a block, or nothing where the block has none.
std::optional<YamlMap> part_of(YamlMap& block, const char* key) {
  const auto value = given(block, key);
  if (!value) return std::nullopt;
  YamlMap part(*value);
  const auto absent = part.find("no_op");
  return absent && absent->flag() ? std::nullopt : std::optional(std::move(part));
}

void refuse_unread(const YamlMap& map) {
  for (const auto& [key, value] : map.unread()) {
    if (!says_nothing(value)) value.fail_key("a layer's part with this is not modelled");
  }
}

int size_of_mlp(YamlMap& ffn, long hidden_size) {
  if (const auto size = given(ffn, "intermediate_size")) {
    return static_cast<int>(size->integer(1, kLargestSize));
  }
  const double factor = ffn.require("ffn_mult", "a factor of the width").number(0, kLargestShare);
  const auto size = static_cast<long>(2 * factor * static_cast<double>(hidden_size) / 3);
  return static_cast<int>((size + kMlpStep - 1) / kMlpStep * kMlpStep);
}

void add_attention(YamlMap& attention, HfBlocks& blocks) {
  const YamlValue group = attention.require("n_heads_in_group", "query heads that share keys");
  const auto heads = static_cast<int>(group.integer(1, kLargestSize));
  if (blocks.heads_of_group > 0 && heads != blocks.heads_of_group) {
    group.fail(fmt::format("groups of {} heads, and of {} in layers before: these are not modelled",
                           heads, blocks.heads_of_group));
  }
  blocks.heads_of_group = heads;
  blocks.letters += '*';
}

void add_mlp(YamlMap& ffn, long hidden_size, HfBlocks& blocks) {
  const int size = size_of_mlp(ffn, hidden_size);
  if (const auto gated = given(ffn, "gated"); gated && !gated->flag()) {
    gated->fail("an MLP without a gate among others is not modelled");
  }
  (void)ffn.find("hidden_act");
  const auto place = std::ranges::find(blocks.sizes, size) - blocks.sizes.begin();
  if (place == kMlpSizes) {
    ffn.value().fail(fmt::format("MLPs of more than {} sizes are not modelled", kMlpSizes));
  }
  if (place == std::ssize(blocks.sizes)) blocks.sizes.push_back(size);
  blocks.letters += static_cast<char>('a' + place);
}

}  // namespace

HfBlocks blocks_of(const YamlValue& list, long hidden_size) {
  HfBlocks blocks;
  for (const YamlValue& each : list.list()) {
    YamlMap block(each);
    if (auto attention = part_of(block, "attention")) {
      if (const auto matrix = attention->find("replace_with_linear"); matrix && matrix->flag()) {
        matrix->fail_key("a matrix in place of attention is not modelled");
      }
      add_attention(*attention, blocks);
      refuse_unread(*attention);
    }
    if (auto ffn = part_of(block, "ffn")) {
      if (const auto matrix = ffn->find("replace_with_linear"); matrix && matrix->flag()) {
        matrix->fail_key("a matrix in place of an MLP is not modelled");
      }
      add_mlp(*ffn, hidden_size, blocks);
      refuse_unread(*ffn);
    }
    refuse_unread(block);
  }
  return blocks;
}

}  // namespace pipesim
