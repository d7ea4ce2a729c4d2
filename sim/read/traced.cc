#include "sim/read/traced.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "models/layer_parameters.h"
#include "models/traced.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

constexpr std::string_view kSchemas = "pipesim-trace/";
constexpr const char* kSchema = "pipesim-trace/1";
constexpr double kLargest = 1e18;
constexpr int kMostPower = 4;
constexpr long kMostOfASize = 1L << 24;
// The room of models/work.h: an exchange is two collectives.
constexpr size_t kMostMatmuls = 64;
constexpr size_t kMostAttention = 6;
constexpr size_t kMostExchanges = 20;

TracedSize size_of_text(const YamlValue& value) {
  TracedSize size;
  std::string text = value.text();
  while (true) {
    const size_t star = text.find('*');
    const std::string word = text.substr(0, star);
    if (word == "b" && size.batch < kMostPower) {
      ++size.batch;
    } else if (word == "s" && size.seq < kMostPower) {
      ++size.seq;
    } else if (word.find_first_not_of("+.0123456789") != 0) {
      size.factor *= value.made_of(YAML::Node(word)).number(0, kLargest);
    } else {
      value.fail(fmt::format("'{}' is no size: expected a product of b, s and numbers, as b*s*4096",
                             value.text()));
    }
    if (size.factor > kLargest) value.fail("is larger than any size");
    if (star == std::string::npos) return size;
    text.erase(0, star + 1);
  }
}

// A size of a matmul or an attention: at least 1.
TracedSize side_of_text(const YamlValue& value) {
  const TracedSize side = size_of_text(value);
  if (side.factor == 0) value.fail("a side is at least 1");
  return side;
}

bool is_alike(const TracedTensor& a, const TracedTensor& b) {
  return a.elements.batch == b.elements.batch && a.elements.seq == b.elements.seq &&
         a.bytes == b.bytes && a.division == b.division;
}

// Adds a tensor to the sum of those of its kind.
void add(const TracedTensor& tensor, std::vector<TracedTensor>& sums) {
  const auto same =
      std::ranges::find_if(sums, [&](const TracedTensor& sum) { return is_alike(sum, tensor); });
  if (same == sums.end()) {
    sums.push_back(tensor);
  } else {
    same->elements.factor += tensor.elements.factor;
  }
}

double product(const YamlValue& shape) {
  double numbers = 1;
  for (const YamlValue& side : shape.list()) numbers *= side.number(0, kLargest);
  return numbers;
}

// Reads one block; `type` is the model's own.
class BlockReader {
 public:
  BlockReader(const YamlValue& value, std::string type) : map_(value), type_(std::move(type)) {}

  TracedBlock read() {
    block_.name = map_.require("name", "the block's name").text();
    (void)map_.find("kind");
    for (const YamlValue& each : list("parameters")) read_parameter(each);
    for (const YamlValue& each : list("tensors")) read_tensor(each);
    for (const YamlValue& each : list("saved")) read_kept(each, true);
    for (const YamlValue& each : list("gradients")) read_kept(each, false);
    for (const YamlValue& each : list("forward")) read_operation(each, false);
    for (const YamlValue& each : list("backward")) read_operation(each, true);
    map_.finish();
    find_working();
    check_room();
    return std::move(block_);
  }

 private:
  std::vector<YamlValue> list(const char* key) { return map_.require(key, "a list").list(); }

  static TracedDivision division_of(const YamlValue& value) {
    static const std::vector<std::string> kNames{"tensor", "experts"};
    return value.choice(kNames) == "tensor" ? TracedDivision::kTensor : TracedDivision::kExperts;
  }

  void read_parameter(const YamlValue& value) {
    static const std::vector<std::string> kRoles{"whole", "columns", "rows", "experts-columns",
                                                 "experts-rows"};
    YamlMap map(value);
    const std::string name = map.require("name", "the parameter's name").text();
    const YamlValue shape = map.require("shape", "a list of sizes");
    const size_t dimensions = shape.list().size();
    const std::string role = map.require("division", "how ranks divide it").choice(kRoles);
    if (const auto heads = map.find("heads"); heads && role == "columns") {
      for (const YamlValue& number : heads->list()) {
        block_.heads.push_back({name, number.integer(1, kMostOfASize)});
      }
    }
    map.finish();
    double TracedParameters::*part = &TracedParameters::experts;
    if (role == "whole" || (role == "rows" && dimensions == 1)) part = &TracedParameters::whole;
    if (role == "columns" || (role == "rows" && dimensions > 1)) part = &TracedParameters::tensor;
    block_.parameters.*part += product(shape);
    if (dimensions > 1) block_.matrices.*part += product(shape);
  }

  // Keys that tensors and what is kept of them share.
  TracedTensor tensor_of(YamlMap& map) {
    static const std::map<std::string, double> kBytes{
        {"bfloat16", 2}, {"float16", 2}, {"float32", 4}, {"float64", 8}, {"int64", 8},
        {"int32", 4},    {"int16", 2},   {"int8", 1},    {"uint8", 1},   {"bool", 1}};
    TracedTensor tensor;
    tensor.elements = size_of_text(map.require("elements", "a size"));
    const YamlValue type = map.require("type", "a type of PyTorch");
    const auto known = kBytes.find(type.text());
    if (known == kBytes.end()) type.fail(fmt::format("type '{}' is not known", type.text()));
    tensor.bytes = type.text() == type_ ? 0 : known->second;
    if (const auto division = map.find("division")) tensor.division = division_of(*division);
    return tensor;
  }

  void read_tensor(const YamlValue& value) {
    YamlMap map(value);
    tensors_.push_back(tensor_of(map));
    storages_.push_back(map.require("storage", "a number").integer(0, kMostOfASize));
    if (map.find("parameter")) stays_.insert(storages_.back());
    map.finish();
  }

  void read_kept(const YamlValue& value, bool saved) {
    static const std::vector<std::string> kUses{"input", "weights", "both"};
    YamlMap map(value);
    TracedKept kept;
    kept.tensor = tensor_of(map);
    const long storage = map.require("storage", "a number").integer(0, kMostOfASize);
    if (saved) stays_.insert(storage);
    if (const auto gathered = map.find("gathered")) kept.gathered = division_of(*gathered);
    kept.until = Kept::kFromB;
    if (saved) {
      const std::string use = map.require("until", "input, weights or both").choice(kUses);
      kept.until = static_cast<Kept>(std::ranges::find(kUses, use) - kUses.begin());
    }
    map.finish();
    const auto same = std::ranges::find_if(block_.kept, [&](const TracedKept& other) {
      return other.until == kept.until && other.gathered == kept.gathered &&
             is_alike(other.tensor, kept.tensor);
    });
    if (same == block_.kept.end()) {
      block_.kept.push_back(kept);
    } else {
      same->tensor.elements.factor += kept.tensor.elements.factor;
    }
  }

  std::vector<size_t> indices(YamlMap& map, const char* key) const {
    std::vector<size_t> indices;
    const auto last = static_cast<long>(tensors_.size()) - 1;
    for (const YamlValue& each : map.require(key, "a list of tensors' numbers").list()) {
      indices.push_back(static_cast<size_t>(each.integer(0, last)));
    }
    return indices;
  }

  void read_operation(const YamlValue& value, bool backward) {
    YamlMap map(value);
    const std::string name = map.require("op", "the operation's name").text();
    const std::vector<size_t> reads = indices(map, "reads");
    const std::vector<size_t> writes = indices(map, "writes");
    bool weights = false;
    if (const auto of = map.find("for")) {
      weights = of->choice(std::vector<std::string>{"weights"}) == "weights";
    }
    TracedPass& pass = !backward ? block_.forward
                       : weights ? block_.backward_weight
                                 : block_.backward_input;
    const auto matmul = map.find("matmul");
    const auto attention = map.find("attention");
    if (matmul) {
      read_matmul(map, *matmul, name, {reads, writes}, pass);
    } else if (attention) {
      read_attention(map, *attention, name, pass);
    } else {
      for (const size_t index : reads) add(tensors_[index], pass.moved);
      for (const size_t index : writes) add(tensors_[index], pass.moved);
      ++pass.kernels;
    }
    map.finish();
    // Gradients of weights are counted beside the weights.
    if (backward) backward_.push_back({reads, weights ? std::vector<size_t>{} : writes});
  }

  // A tensor of the backward lives from the kernel that writes it to the last that reads it.
  void find_working() {
    struct Life {
      size_t first, last, tensor;
    };
    std::map<long, Life> lives;
    for (size_t at = 0; at < backward_.size(); ++at) {
      for (const size_t index : backward_[at].writes) {
        if (stays_.contains(storages_[index])) continue;
        lives.try_emplace(storages_[index], Life{at, at, index});
      }
      for (const size_t index : backward_[at].reads) {
        const auto life = lives.find(storages_[index]);
        if (life != lives.end()) life->second.last = at;
      }
    }
    block_.working.resize(backward_.size());
    for (const auto& [storage, life] : lives) {
      for (size_t at = life.first; at <= life.last; ++at) {
        add(tensors_[life.tensor], block_.working[at]);
      }
    }
  }

  using ReadsWrites = std::pair<const std::vector<size_t>&, const std::vector<size_t>&>;

  void read_matmul(YamlMap& map, const YamlValue& value, const std::string& operation,
                   const ReadsWrites& tensors, TracedPass& pass) {
    static const std::vector<std::string> kSides{"batch", "m", "n", "k"};
    TracedMatmul matmul;
    YamlMap sides(value);
    for (size_t i = 0; i < kSides.size(); ++i) {
      matmul.sides[i] = side_of_text(sides.require(kSides[i], "a size"));
    }
    sides.finish();
    const auto parameter = map.find("parameter");
    matmul.name = parameter ? parameter->text() : operation;
    if (const auto divided = map.find("divided")) {
      const auto side = std::ranges::find(kSides, divided->choice(kSides)) - kSides.begin();
      matmul.divided = static_cast<TracedSide>(side);
    }
    set_flag(map, "experts", matmul.experts);
    const auto& [reads, writes] = tensors;
    matmul.fp32 = !writes.empty() && tensors_[writes.front()].bytes == 4;
    read_exchange(map, matmul.experts, tensors);
    if (!is_one_more_expert(matmul, pass)) pass.matmuls.push_back(matmul);
  }

  // Experts with matrices of their own run as one kernel for all of them.
  static bool is_one_more_expert(const TracedMatmul& matmul, TracedPass& pass) {
    if (!matmul.experts || matmul.sides.front() != TracedSize{}) return false;
    for (TracedMatmul& other : pass.matmuls) {
      const bool same =
          other.experts && other.divided == matmul.divided &&
          nameless(other.name) == nameless(matmul.name) &&
          std::equal(other.sides.begin() + 1, other.sides.end(), matmul.sides.begin() + 1);
      if (!same) continue;
      ++other.sides.front().factor;
      return true;
    }
    return false;
  }

  // Without the expert's number.
  static std::string nameless(std::string name) {
    std::erase_if(name, [](char letter) { return letter >= '0' && letter <= '9'; });
    return name;
  }

  void read_exchange(YamlMap& map, bool experts, const ReadsWrites& tensors) {
    static const std::vector<std::string> kWays{"enter", "leave"};
    const auto exchange = map.find("exchange");
    if (!exchange) return;
    const bool enters = exchange->choice(kWays) == "enter";
    const auto& [reads, writes] = tensors;
    // Values are what is read beside the parameter, or what is written.
    const auto values =
        enters ? std::ranges::find_if(
                     reads, [&](size_t index) { return tensors_[index].elements.has_tokens(); })
               : writes.begin();
    if (values == (enters ? reads : writes).end()) exchange->fail("of no values");
    const TracedExchange made{tensors_[*values], experts, enters};
    // The rows of experts with matrices of their own go together.
    const auto same = std::ranges::find_if(block_.exchanges, [&](const TracedExchange& other) {
      return experts && other.experts && other.enters == enters &&
             is_alike(other.values, made.values);
    });
    if (same == block_.exchanges.end()) {
      block_.exchanges.push_back(made);
    } else {
      same->values.elements.factor += made.values.elements.factor;
    }
  }

  void read_attention(YamlMap& map, const YamlValue& value, const std::string& name,
                      TracedPass& pass) {
    TracedAttention attention;
    YamlMap sizes(value);
    attention.batch = side_of_text(sizes.require("batch", "a size"));
    attention.queries = side_of_text(sizes.require("queries", "a size"));
    attention.keys = side_of_text(sizes.require("keys", "a size"));
    for (const auto& [key, size] :
         {std::pair("heads", &attention.heads), std::pair("groups", &attention.groups),
          std::pair("qk", &attention.qk), std::pair("v", &attention.v)}) {
      *size = sizes.require(key, "a number").number(1, kMostOfASize);
    }
    sizes.finish();
    set_flag(map, "causal", attention.causal);
    if (const auto divided = map.find("divided")) {
      attention.divided = divided->choice(std::vector<std::string>{"heads"}) == "heads";
    }
    attention.backward = name.ends_with("_backward");
    if (attention.divided && !attention.backward) {
      block_.heads.push_back({"queries", std::lround(attention.heads)});
      block_.heads.push_back({"keys", std::lround(attention.groups)});
    }
    pass.attention.push_back(attention);
  }

  void check_room() const {
    for (const TracedPass* pass :
         {&block_.forward, &block_.backward_input, &block_.backward_weight}) {
      if (pass->matmuls.size() > kMostMatmuls || pass->attention.size() > kMostAttention) {
        map_.value().fail(
            fmt::format("{} has {} matmuls and {} attention kernels in a pass, more than the {} "
                        "and {} of a layer that are modelled",
                        block_.name, pass->matmuls.size(), pass->attention.size(), kMostMatmuls,
                        kMostAttention));
      }
    }
    if (block_.exchanges.size() <= kMostExchanges) return;
    map_.value().fail(fmt::format("{} exchanges {} times in F, more than the {} that are modelled",
                                  block_.name, block_.exchanges.size(), kMostExchanges));
  }

  YamlMap map_;
  std::string type_;
  std::vector<TracedTensor> tensors_;
  std::vector<long> storages_;
  std::set<long> stays_;  // storages of parameters, and those that forward saves
  struct Operation {
    std::vector<size_t> reads, writes;
  };
  std::vector<Operation> backward_;
  TracedBlock block_;
};

// The sizes of experts that reports and other ranks ask for.
std::optional<Experts> experts_of(const Traced& traced) {
  for (const TracedBlock& block : traced.blocks) {
    for (const TracedMatmul& matmul : block.forward.matmuls) {
      if (!matmul.experts || matmul.divided != TracedSide::kN) continue;
      Experts experts;
      const auto whole = [&](TracedSide side) {
        return std::lround(matmul.sides[static_cast<size_t>(side)].factor);
      };
      experts.num_experts = static_cast<int>(whole(TracedSide::kBatch));
      const double rows = matmul.sides[0].factor * matmul.sides[1].factor;
      experts.experts_per_token = static_cast<int>(
          std::clamp<double>(std::round(rows), 1, std::max(1, experts.num_experts)));
      experts.ffn_hidden_size = static_cast<int>(whole(TracedSide::kN));
      return experts;
    }
  }
  return std::nullopt;
}

void read_layers(YamlMap& map, Traced& traced) {
  const YamlValue layers = map.require("layers", "the block of each layer, by number");
  for (const YamlValue& each : layers.list()) {
    traced.layers.push_back(
        static_cast<int>(each.integer(0, static_cast<long>(traced.blocks.size()) - 1)));
  }
  if (traced.layers.empty()) layers.fail("a model needs a layer");
}

void read_lengths(YamlMap& map, Traced& traced) {
  const YamlValue lengths = map.require("sequences", "the least and the most tokens of a sequence");
  const std::vector<YamlValue> ends = lengths.list();
  if (ends.size() != 2) lengths.fail("expected two numbers of tokens: the least and the most");
  traced.least_tokens = static_cast<int>(ends[0].integer(1, kMostOfASize));
  traced.most_tokens = static_cast<int>(ends[1].integer(traced.least_tokens, kMostOfASize));
}

void read_ends(YamlMap& map, Transformer& model) {
  const auto size = [&](const char* key, long least) {
    return static_cast<int>(map.require(key, "a size").integer(least, kMostOfASize));
  };
  model.hidden_size = size("hidden_size", 1);
  model.vocab_size = size("vocab_size", 1);
  model.max_position_embeddings = size("max_positions", 0);
  model.positions = model.max_position_embeddings > 0 ? Positions::kLearned : Positions::kNone;
  model.tied_embeddings = map.require("tied", "true or false").flag();
  const bool layer_norm =
      map.require("norm", "RMSNorm or LayerNorm")
          .choice(std::vector<std::string>{"RMSNorm", "LayerNorm"}) == "LayerNorm";
  model.norm = layer_norm ? Norm::kLayerNorm : Norm::kRmsNorm;
}

// Parts outside of the blocks that nobody knows may cost anything.
void check_parameters(YamlMap& map, const Transformer& model) {
  constexpr double kMostUnknown = 0.01;
  const YamlValue given = map.require("parameters", "the number of parameters");
  const double all = given.number(1, kLargest);
  const double described = total_parameters(model);
  if (model.traced->other_parameters > kMostUnknown * all) {
    std::vector<std::string> names;
    for (const auto& [name, shape] : map.require("other_parameters", "a map").entries()) {
      names.push_back(name);
    }
    given.fail(fmt::format(
        "{:.1f}% of them stand outside of the blocks and are no embedding, output or norm ({}{}): "
        "what they cost is not known",
        100 * model.traced->other_parameters / all, names.front(),
        names.size() > 1 ? ", ..." : ""));
  }
  if (std::abs(described - all) <= kMostUnknown * all) return;
  given.fail(fmt::format("blocks, embedding and output have {:.0f} of them: the rest is not known",
                         described));
}

}  // namespace

bool is_traced_file(const std::string& path) {
  try {
    const YamlSource source = YamlSource::from_file(path, {});
    const YamlValue root = source.root();
    if (!root.is_map()) return false;
    const YAML::Node schema = root.node()["schema"];
    return schema.IsDefined() && schema.IsScalar() && schema.Scalar().starts_with(kSchemas);
  } catch (const InputError&) {
    return false;
  }
}

Transformer read_traced_file(const std::string& path, const Location& asked) {
  const YamlSource source = YamlSource::from_file(path, asked);
  YamlMap map(source.root());
  (void)map.require("schema", "a file of tools/trace_torch.py")
      .choice(std::vector<std::string>{kSchema});
  Transformer model;
  model.name = std::filesystem::path(path).stem().string();
  model.source = fmt::format("{}, traced from {}", path, map.require("model", "its code").text());
  (void)map.find("arguments");
  (void)map.find("torch");
  static const std::vector<std::string> kTypes{"bfloat16", "float16", "float32"};
  const std::string type = map.require("type", "the weights' type").choice(kTypes);
  Traced traced;
  read_lengths(map, traced);
  const YamlValue blocks = map.require("blocks", "a list of kinds of blocks");
  for (const YamlValue& block : blocks.list()) {
    traced.blocks.push_back(BlockReader(block, type).read());
  }
  if (traced.blocks.empty() || traced.blocks.size() > static_cast<size_t>(kTracedKinds)) {
    blocks.fail(fmt::format("expected 1 to {} kinds of blocks, found {}", kTracedKinds,
                            traced.blocks.size()));
  }
  read_layers(map, traced);
  read_ends(map, model);
  for (const auto& [name, shape] : map.require("other_parameters", "a map").entries()) {
    traced.other_parameters += product(shape);
  }
  model.num_layers = static_cast<int>(traced.layers.size());
  model.experts = experts_of(traced);
  model.traced = std::make_shared<const Traced>(std::move(traced));
  check_parameters(map, model);
  map.finish();
  return model;
}

}  // namespace pipesim
