#include "sim/read/unequal_batch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "sim/core/input_text.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim {
namespace {

using Of = UnequalBatch::Of;

constexpr int kLongest = 1 << 28;
constexpr long kMostImages = 1'000'000;
constexpr double kLargestFactor = 1e6;

constexpr double kMostCount = 1e15;

// A line of a histogram, "value,count".
struct Bin {
  double value = 0;
  double count = 0;
};

bool starts_as_number(const std::string& line) {
  double value = 0;
  return std::from_chars(line.data(), line.data() + line.size(), value).ec == std::errc();
}

std::optional<Bin> bin_of(const std::string& line) {
  const char* end = line.data() + line.size();
  Bin bin;
  const auto [comma, bad] = std::from_chars(line.data(), end, bin.value);
  if (bad != std::errc() || comma == end || *comma != ',') return std::nullopt;
  const auto [stop, worse] = std::from_chars(comma + 1, end, bin.count);
  if (worse != std::errc() || stop != end) return std::nullopt;
  return bin;
}

// Numbers of one kind: tokens of documents, images of samples, or factors.
class DrawReader {
 public:
  DrawReader(Of of, double most, const std::string& scenario_file)
      : of_(of), most_(most), scenario_file_(scenario_file) {}

  [[nodiscard]] Draw read(const YamlValue& value) const {
    Draw draw;
    draw.where = value.where();
    if (value.is_list()) {
      for (const YamlValue& each : value.list()) {
        const bool whole = of_ == Of::kImages;
        draw.values.push_back(whole ? static_cast<double>(each.integer(0, kMostImages))
                                    : number(each));
      }
      if (draw.values.empty()) value.fail("expected at least one number");
      return draw;
    }
    if (!value.is_map()) value.fail("expected a list, a distribution or a file of a histogram");
    YamlMap map(value);
    if (const auto file = map.find("file")) {
      if (const auto name = map.find("distribution")) name->fail("stands beside 'file'");
      draw.kind = Draw::Kind::kHistogram;
      read_histogram(*file, draw);
      draw.least = *std::ranges::min_element(draw.values);
      draw.most = *std::ranges::max_element(draw.values);
    } else {
      read_distribution(map, draw);
    }
    if (const auto seed = map.find("seed")) {
      draw.seed = static_cast<std::uint64_t>(seed->integer(0, 1L << 53));
    }
    if (const auto runs = map.find("runs")) {
      draw.runs = static_cast<int>(runs->integer(1, 10000));
    }
    map.finish();
    return draw;
  }

 private:
  static constexpr std::array kNames{"factor", "tokens", "images"};

  [[nodiscard]] double least(double factor) const {
    return of_ == Of::kFactors ? factor : of_ == Of::kLengths ? 1 : 0;
  }
  [[nodiscard]] double number(const YamlValue& value) const {
    if (of_ == Of::kLengths) {
      return static_cast<double>(value.tokens(1, static_cast<long>(most_)));
    }
    if (of_ == Of::kImages) return value.number(0, most_);
    const double factor = value.number(0, most_);
    if (factor <= 0) value.fail("must be greater than 0");
    return factor;
  }

  void read_distribution(YamlMap& map, Draw& draw) const {
    static const std::vector<std::string> kNames{"lognormal", "uniform"};
    const std::string name =
        map.require("distribution", "lognormal or uniform (or 'file': a histogram)").choice(kNames);
    const auto max = map.find("max");
    draw.most = max ? number(*max) : most_;
    if (name == "lognormal") {
      draw.kind = Draw::Kind::kLognormal;
      draw.mean = number(map.require("mean", "the mean of what is drawn"));
      draw.sigma = map.require("sigma", "the spread of its logarithm").number(0, 10);
      draw.least = least(1 / kLargestFactor);
      if (const auto min = map.find("min")) min->fail_key("is of distribution uniform");
      return;
    }
    draw.kind = Draw::Kind::kUniform;
    for (const char* key : {"mean", "sigma"}) {
      if (const auto given = map.find(key)) given->fail_key("is of distribution lognormal");
    }
    if (!max) (void)map.require("max", "the largest that is drawn");
    const YamlValue min = map.require("min", "the smallest that is drawn");
    draw.least = number(min);
    if (draw.least > draw.most) min.fail("is larger than max");
  }

  // Lines `value,count`; a first line of words, empty lines and those with # are passed over.
  void read_histogram(const YamlValue& file, Draw& draw) const {
    const std::string path = file_beside(scenario_file_, file.text());
    const std::string text = read_input(path, file.where());
    int line = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string one = text.substr(begin, end - begin);
      if (one.ends_with('\r')) one.pop_back();
      read_bin({path, ++line, 1, one}, one, draw);
      begin = end + 1;
    }
    if (draw.values.empty()) file.fail("has no lines of the form 'value,count'");
  }

  void read_bin(const Location& where, const std::string& line, Draw& draw) const {
    if (line.empty() || line.starts_with('#')) return;
    const std::optional<Bin> bin = bin_of(line);
    // The first line may be words.
    if (!bin && draw.values.empty() && where.line == 1 && !starts_as_number(line)) return;
    const bool sound = bin && bin->value >= least(std::numeric_limits<double>::min()) &&
                       bin->value <= most_ && bin->count > 0 && bin->count < kMostCount;
    if (!sound) {
      throw InputError(where, fmt::format("expected '{},count', {} at most {} and a count above 0",
                                          kNames.at(static_cast<size_t>(of_)),
                                          kNames.at(static_cast<size_t>(of_)), most_));
    }
    draw.values.push_back(bin->value);
    draw.counts.push_back(bin->count);
  }

  Of of_;
  double most_;
  const std::string& scenario_file_;
};

std::vector<std::string> words(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

void read_outliers(const YamlValue& value, UnequalBatch& unequal) {
  if (unequal.packing != Packing::kBalanced) value.fail("is of packing balanced");
  if (unequal.draw.listed()) {
    value.fail("wait for later batches: give lengths as a distribution or a file");
  }
  for (const YamlValue& each : value.list()) {
    const int tokens = static_cast<int>(each.tokens(1, kLongest));
    if (!unequal.outliers.empty() && tokens <= unequal.outliers.back()) {
      each.fail(fmt::format("must be larger than the one before, {}", unequal.outliers.back()));
    }
    unequal.outliers.push_back(tokens);
  }
  if (unequal.outliers.empty()) value.fail("expected at least one length");
}

void read_packing(const YamlValue& value, UnequalBatch& unequal) {
  static const std::vector<std::string> kNames = words(kPackingNames);
  const auto chosen = [](const YamlValue& name) {
    const std::string text = name.choice(kNames);
    return static_cast<Packing>(std::ranges::find(kNames, text) - kNames.begin());
  };
  if (!value.is_map()) {
    unequal.packing = chosen(value);
    return;
  }
  YamlMap map(value);
  unequal.packing = chosen(map.require("name", "none, greedy or balanced"));
  if (const auto room = map.find("room")) {
    if (unequal.packing != Packing::kBalanced) room->fail("is of packing balanced");
    unequal.room = room->number(1, 1000);
  }
  if (const auto outliers = map.find("outliers")) read_outliers(*outliers, unequal);
  map.finish();
}

// A name, or the microbatches one by one.
void read_order(const YamlValue& value, int microbatches, UnequalBatch& unequal) {
  if (!value.is_list()) {
    static const std::vector<std::string> kNames =
        words(std::span(kMicrobatchOrderNames).first<kMicrobatchOrderNames.size() - 1>());
    unequal.order = static_cast<MicrobatchOrder>(std::ranges::find(kNames, value.choice(kNames)) -
                                                 kNames.begin());
    return;
  }
  unequal.order = MicrobatchOrder::kListed;
  for (const YamlValue& each : value.list()) {
    const auto number = static_cast<int>(each.integer(0, microbatches - 1));
    if (std::ranges::find(unequal.listed_order, number) != unequal.listed_order.end()) {
      each.fail(fmt::format("microbatch {} is there already", number));
    }
    unequal.listed_order.push_back(number);
  }
  if (std::ssize(unequal.listed_order) != microbatches) {
    value.fail(fmt::format("names {} of {} microbatches: name each once, from 0 on",
                           unequal.listed_order.size(), microbatches));
  }
}

double most_of(Of of, const Batch& batch) {
  if (of == Of::kLengths) return batch.seq_length.value_or(kLongest);
  return of == Of::kImages ? static_cast<double>(kMostImages) : kLargestFactor;
}

// Why the scenario does not take what is drawn; empty where it does.
std::string fault_of(const Scenario& scenario) {
  const Of of = scenario.batch.unequal->of;
  if (of == Of::kFactors) {
    return scenario.roofline ? "factors are for given costs: give 'lengths' or 'images' where "
                               "seconds follow from a model"
                             : "";
  }
  const bool lengths = of == Of::kLengths;
  if (!scenario.roofline) {
    return fmt::format(
        "{} need a model and its seconds, which say what {} costs: give 'factors' "
        "where costs are given",
        lengths ? "lengths" : "images", lengths ? "a token" : "an image");
  }
  const Modelled& modelled = *scenario.modelled;
  if (!lengths)
    return modelled.model.encoder ? "" : "images need a model with an encoder (model.encoder)";
  if (!modelled.context.flash_attention) {
    return "lengths need flash attention, which stays within a document";
  }
  const bool encodes = modelled.model.encoder.has_value();
  if (encodes == scenario.batch.unequal->images_draw.has_value()) return "";
  return encodes ? "lengths beside an encoder need 'images' of the samples, too: encoder: "
                   "{images: 0} leaves it out"
                 : "images need a model with an encoder (model.encoder)";
}

// Draws at most as many images as a sequence has room for.
void limit_images(const Scenario& scenario, Draw& draw) {
  if (draw.most != static_cast<double>(kMostImages)) return;  // a limit is given
  const Encoder& encoder = *scenario.modelled->model.encoder;
  draw.most = std::floor(static_cast<double>(*scenario.batch.seq_length) * encoder.merged /
                         encoder.patches);
}

}  // namespace

std::optional<UnequalBatch> read_unequal_batch(YamlMap& map, const Batch& batch,
                                               const std::string& scenario_file) {
  UnequalBatch unequal;
  const auto read = [&](Of of, const YamlValue& value) {
    return DrawReader(of, most_of(of, batch), scenario_file).read(value);
  };
  const auto lengths = map.find("lengths");
  const auto images = map.find("images");
  const auto factors = map.find("factors");
  if (factors && (lengths || images)) {
    factors->fail(
        fmt::format("stands beside '{}': give one of them", lengths ? "lengths" : "images"));
  }
  const auto& given = lengths ? lengths : images ? images : factors;
  const auto packing = map.find("packing");
  const auto order = map.find("order");
  if (packing && !lengths) packing->fail("is of documents: give 'lengths'");
  if (order && !given) order->fail("needs 'lengths', 'images' or 'factors' to order by");
  if (!given) return std::nullopt;
  unequal.of = lengths ? Of::kLengths : images ? Of::kImages : Of::kFactors;
  unequal.draw = read(unequal.of, *given);
  if (lengths && images) {
    unequal.images_draw = read(Of::kImages, *images);
    if (unequal.images_draw->runs > 1)
      images->fail("are drawn as often as lengths are: leave out runs here");
  }
  if (packing) read_packing(*packing, unequal);
  if (order) read_order(*order, batch.microbatches, unequal);
  return unequal;
}

void settle_unequal_batch(Scenario& scenario) {
  if (!scenario.batch.unequal) return;
  UnequalBatch& unequal = *scenario.batch.unequal;
  if (std::string fault = fault_of(scenario); !fault.empty()) {
    const bool of_images =
        unequal.images_draw && scenario.modelled && !scenario.modelled->model.encoder;
    throw InputError(of_images ? unequal.images_draw->where : unequal.draw.where, std::move(fault));
  }
  if (unequal.of == Of::kImages) limit_images(scenario, unequal.draw);
  if (unequal.images_draw) limit_images(scenario, *unequal.images_draw);
  draw_batch(scenario, unequal.draw.seed);
}

}  // namespace pipesim
