#include "validate/calibration/fitted.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "sim/core/error.h"
#include "validate/calibration/compare_layers.h"
#include "validate/calibration/fit.h"
#include "validate/calibration/fit_host.h"

namespace pipesim::calibration {
namespace {

// A constant that does not matter is 0.
double tidy(double value) { return value < 1e-3 ? 0 : value; }

std::string in_microseconds(Seconds time) { return fmt::format("{:.3g} us", time.value() * 1e6); }
std::string in_gigabytes(BytesPerSecond rate) {
  return fmt::format("{:.4g} GB/s", rate.value() * 1e-9);
}
std::string in_kilobytes(Bytes bytes) { return fmt::format("{:.3g} KB", bytes.value() * 1e-3); }

Seconds time_of(const Point& point) { return Seconds(point.time_us.median * 1e-6); }

std::int64_t whole(const Point& point, std::string_view name) {
  const std::string text = point.parameter(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    throw InputError({"", 0, 0, ""}, fmt::format("measured point {}: {} is '{}', expected a number",
                                                 point.key(), name, text));
  }
  return value;
}

MatmulRow matmul_row(const Point& point) {
  MatmulSpec spec{.precision = point.parameter("dtype") == name_of(Precision::kFp8)
                                   ? Precision::kFp8
                                   : Precision::kBf16,
                  .tokens = whole(point, "tokens"),
                  .in = whole(point, "in"),
                  .out = whole(point, "out")};
  for (const MatmulPass pass : {MatmulPass::kInputGradient, MatmulPass::kWeightGradient}) {
    if (point.name == name_of(pass)) spec.pass = pass;
  }
  return {spec.matmul(), time_of(point)};
}

AttentionRow attention_row(const Point& point) {
  return {{.flops = Flops(point.flops),
           .moved = Bytes(point.bytes),
           .head_size = static_cast<int>(whole(point, "head_dim")),
           .backward = point.name == "backward",
           .rows = static_cast<double>(whole(point, "batch") * whole(point, "heads") *
                                       whole(point, "sequence"))},
          time_of(point)};
}

StreamRow stream_row(const Point& point) {
  // The gradient of a norm's weight is summed in two kernels.
  const bool two = point.name == name_of(Kernel::kNormWeightGradient);
  return {Bytes(point.bytes), two ? 2 : 1, time_of(point)};
}

SizeRow size_row(const Point& point) { return {Bytes(point.bytes), time_of(point)}; }

constexpr std::array<std::pair<const char*, CollectiveKind>, 4> kCollectives{
    {{"all_reduce", CollectiveKind::kAllReduce},
     {"all_gather", CollectiveKind::kAllGather},
     {"reduce_scatter", CollectiveKind::kReduceScatter},
     {"all_to_all", CollectiveKind::kAllToAll}}};

// The parameters that tell one curve from another: all but the sizes.
std::string curve_of(const Point& point) {
  Parameters kept;
  for (const auto& entry : point.parameters) {
    if (entry.first != "size" && entry.first != "rows" && entry.first != "columns") {
      kept.push_back(entry);
    }
  }
  return make_key(point.group, point.name, kept);
}

using Points = std::vector<const Point*>;

template <class RowOf>
auto rows_of(const Points& points, RowOf row_of) {
  std::vector<decltype(row_of(*points.front()))> rows;
  rows.reserve(points.size());
  for (const Point* point : points) rows.push_back(row_of(*point));
  return rows;
}

std::pair<std::string, std::string> efficiency(double value) {
  return {"efficiency", fmt::format("{:.4g}", value)};
}

FittedCurve curve(Numbers numbers, const Points& points, const std::vector<double>& errors) {
  FittedCurve fitted{"", std::move(numbers), {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    fitted.rows.push_back(
        {points[i]->key(), time_of(*points[i]), points[i]->time_us.spread(), errors[i]});
  }
  return fitted;
}

class Fitter {
 public:
  Fitter(const Measurements& measured, const Gpu& catalogue, Interconnect node)
      : measured_(measured), gpu_(catalogue), node_(node) {
    node_.sustained = 1;  // nothing runs beside collectives that are measured
  }

  void kernels() {
    fit("matmul", select("matmul", "", Precision::kBf16), [&](const Points& points) {
      const auto rows = rows_of(points, matmul_row);
      gpu_ = fit_matmul(gpu_, rows);
      return curve(matmul_numbers(gpu_), points, errors(gpu_, rows));
    });
    if (gpu_.has(Precision::kFp8)) {
      fit("matmul_fp8", select("matmul", "", Precision::kFp8), [&](const Points& points) {
        const auto rows = rows_of(points, matmul_row);
        gpu_.matmul.efficiency[1] = fit_fp8_efficiency(gpu_, rows);
        return curve({efficiency(gpu_.matmul.efficiency[1])}, points, errors(gpu_, rows));
      });
    }
    for (const char* direction : {"forward", "backward"}) attention(direction);
    attention_kernels();
    fit("streaming", select("kernel"), [&](const Points& points) {
      const auto rows = rows_of(points, stream_row);
      gpu_ = fit_streaming(gpu_, rows);
      return curve({efficiency(gpu_.streaming)}, points, errors(gpu_, rows));
    });
  }

  // The model has one bandwidth for both directions: that of the slower one. Both at once is never
  // faster than one alone; what all GPUs of a switch reach together, where it was measured, goes
  // before what one reaches.
  void host_copies() {
    const bool together = !select("copy_together").empty();
    const auto both = [&](const Point& point) {
      return point.group == (together ? "copy_together" : "copy") &&
             point.parameter("during") != "nothing";
    };
    const auto one = [](const Point& point) {
      return point.group == "copy" && point.parameter("during") == "nothing";
    };
    Points used;
    for (const Point& point : measured_.points) {
      if (one(point) || both(point)) used.push_back(&point);
    }
    fit("host", used, [&](const Points& points) {
      const SizeCurve alone = slower_direction(points, one);
      SizeCurve duplex = slower_direction(points, both);
      duplex.bandwidth = std::min(duplex.bandwidth, alone.bandwidth);
      std::vector<double> left;
      for (const Point* point : points) {
        const SizeCurve& curve = one(*point) ? alone : duplex;
        left.push_back(errors(curve, std::array{size_row(*point)}).front());
      }
      return curve(
          {{"alone", in_gigabytes(alone.bandwidth)}, {"duplex", in_gigabytes(duplex.bandwidth)}},
          points, left);
    });
  }

  // A measuring program says of each all-reduce whether NCCL could run it in the switch;
  // `nvls_ranks` says so where it did not.
  void collectives(int nvls_ranks) {
    for (const Point* point : select("nccl", "all_reduce")) {
      const auto ranks = static_cast<int>(whole(*point, "ranks"));
      if (point->parameter("in_switch") == "1" && (nvls_ranks == 0 || ranks < nvls_ranks)) {
        nvls_ranks = ranks;
      }
    }
    for (const auto& [name, kind] : kCollectives) {
      Points ring;
      Points in_switch;
      for (const Point* point : select("nccl", name)) {
        const bool nvls = kind == CollectiveKind::kAllReduce && nvls_ranks > 0 &&
                          whole(*point, "ranks") >= nvls_ranks;
        (nvls ? in_switch : ring).push_back(point);
      }
      collective(name, kind, ring, {});
      if (!in_switch.empty()) {
        collective("all_reduce_in_switch", kind, in_switch,
                   {{"ranks", std::to_string(nvls_ranks)}});
      }
    }
  }

  // The links between stages: within a node, and between nodes with as many GPUs of each at once as
  // were measured. An exchange is a message each way too.
  void messages() {
    Points within = select("nccl", "send_recv");
    std::ranges::copy(select("nccl", "exchange"), std::back_inserter(within));
    fit("send_recv", within, [](const Points& points) { return message_curve(points, {}); });
    Points between = select("network", "send_recv");
    std::ranges::copy(select("network", "exchange"), std::back_inserter(between));
    const std::int64_t most = keep_most_gpus(between);
    fit("send_recv_between_nodes", between, [most](const Points& points) {
      return message_curve(points, {{"gpus", std::to_string(most)}});
    });
  }

  // Requires the curves within a node to be fitted, which these take for their part of the way.
  void collectives_between_nodes() {
    for (const auto& [name, kind] : kCollectives) {
      Points points = select("network", name);
      const std::int64_t most = keep_most_gpus(points);
      const auto curve = [this, collective = kind, gpus = static_cast<int>(most)](
                             const Points& of) { return network_curve(collective, gpus, of); };
      fit(std::string(name) + "_between_nodes", points, curve);
    }
  }

  void host_and_spread() {
    fit("host_operation", host_points(measured_),
        [this](const Points& of) { return fit_host(of, is_fused(measured_)); });
    fit("jitter", select("spread"), fit_jitter);
  }

  // Time that compute loses to work beside it.
  void interference() {
    beside("compute_beside_messages", {{"send_recv", 2}, {"exchange", 2}}, 0.5);
    beside("compute_beside_copies", {{"h2d", 1}, {"d2h", 1}, {"h2d_and_d2h", 2}}, 0.5);
    std::map<std::string, int> collectives;
    for (const auto& [name, kind] : kCollectives) collectives[name] = 1;
    beside("compute_beside_collectives", collectives, 0.95);
  }

  void by_size() {
    std::map<std::string, Points> curves;
    for (const Point& point : measured_.points) {
      if (point.group == "kernel" || point.group == "copy" || point.group == "nccl" ||
          point.group == "network") {
        curves[curve_of(point)].push_back(&point);
      }
    }
    for (const auto& [name, points] : curves) {
      if (points.size() < 3) continue;
      const auto rows = rows_of(points, size_row);
      const SizeCurve found = fit_by_size(rows);
      FittedCurve fitted = curve({{"latency", in_microseconds(found.latency)},
                                  {"bandwidth", in_gigabytes(found.bandwidth)}},
                                 points, errors(found, rows));
      fitted.name = name;
      result_.by_size.push_back(std::move(fitted));
    }
  }

  [[nodiscard]] Fitted result() && { return std::move(result_); }

 private:
  [[nodiscard]] Points select(std::string_view group, std::string_view name = "",
                              std::optional<Precision> precision = {}) const {
    Points points;
    for (const Point& point : measured_.points) {
      if (point.group != group || (!name.empty() && point.name != name)) continue;
      if (precision && point.parameter("dtype") != name_of(*precision)) continue;
      points.push_back(&point);
    }
    return points;
  }

  static std::int64_t gpus_of_a_node(const Point& point) {
    return whole(point, "ranks") / whole(point, "nodes");
  }

  // With as many GPUs of a node at once as any point has; how many.
  static std::int64_t keep_most_gpus(Points& points) {
    std::int64_t most = 1;
    for (const Point* point : points) most = std::max(most, gpus_of_a_node(*point));
    std::erase_if(points, [most](const Point* point) { return gpus_of_a_node(*point) < most; });
    return most;
  }

  FittedCurve network_curve(CollectiveKind kind, int gpus, const Points& points) const {
    const auto rows = rows_of(points, [&](const Point& point) {
      const auto ranks = static_cast<int>(whole(point, "ranks"));
      return NetworkRow{{kind, Group::kTensor, Bytes(point.bytes)}, {ranks, gpus}, time_of(point)};
    });
    Interconnect node = node_;
    node.gpus_per_node = node.nics_per_node = gpus;
    const MessageCurve found = fit_between_nodes(node, rows);
    node.between_nodes.at(static_cast<std::size_t>(kind)) = found;
    Numbers numbers = message_numbers(found);
    numbers.insert(numbers.begin(), {"gpus", std::to_string(gpus)});
    return curve(std::move(numbers), points, errors(node, rows));
  }

  static Numbers message_numbers(const MessageCurve& found) {
    return {{"latency", in_microseconds(found.latency)},
            {"bandwidth", in_gigabytes(found.bandwidth)},
            {"ramp", in_kilobytes(found.ramp)}};
  }

  static FittedCurve message_curve(const Points& points, Numbers numbers) {
    const auto rows = rows_of(points, size_row);
    const MessageCurve found = fit_messages(rows);
    std::ranges::move(message_numbers(found), std::back_inserter(numbers));
    return curve(std::move(numbers), points, errors(found, rows));
  }

  // Matmuls beside what is named, each with its flows, against the same with nothing beside them.
  void beside(const std::string& name, const std::map<std::string, int>& flows, double most) {
    Points disturbed;
    std::vector<BesideRow> rows;
    for (const Point* point : select("interference", "matmul")) {
      const auto found = flows.find(point->parameter("during"));
      if (found == flows.end()) continue;
      const Point* alone = measured_.find(undisturbed(*point));
      if (alone == nullptr) continue;
      disturbed.push_back(point);
      rows.push_back({time_of(*alone), found->second, time_of(*point)});
    }
    fit(name, disturbed, [&](const Points& points) {
      const double share = fit_share(rows, most);
      return curve({{"share", fmt::format("{:.4g}", tidy(share))}}, points, errors(share, rows));
    });
  }

  // The key of the same point with nothing beside it.
  static std::string undisturbed(const Point& point) {
    Parameters parameters = point.parameters;
    for (auto& [name, value] : parameters) {
      if (name == "during") value = "nothing";
    }
    return make_key(point.group, point.name, parameters);
  }

  template <class Wanted>
  static SizeCurve slower_direction(const Points& points, Wanted wanted) {
    std::optional<SizeCurve> slower;
    for (const char* direction : {"h2d", "d2h"}) {
      Points of;
      for (const Point* point : points) {
        if (point->name == direction && wanted(*point)) of.push_back(point);
      }
      const SizeCurve found = fit_by_size(rows_of(of, size_row));
      if (!slower || found.bandwidth < slower->bandwidth) slower = found;
    }
    return *slower;
  }

  void fit(const std::string& name, const Points& points,
           const std::function<FittedCurve(const Points&)>& make) {
    if (points.empty()) {
      result_.not_fitted.push_back({name, "nothing of it was measured"});
      return;
    }
    try {
      FittedCurve fitted = make(points);
      fitted.name = name;
      result_.curves.push_back(std::move(fitted));
    } catch (const std::invalid_argument& error) {
      result_.not_fitted.push_back({name, error.what()});
    }
  }

  void attention(const std::string& direction) {
    if (measured_.fact("attention") == kUnfusedAttention) {
      result_.not_fitted.push_back({"attention_" + direction, "it was measured unfused"});
      return;
    }
    Points fused = select("attention", direction);
    std::erase_if(fused, [](const Point* point) { return !point->parameter("method").empty(); });
    fit("attention_" + direction, fused, [&](const Points& points) {
      const auto rows = rows_of(points, attention_row);
      gpu_ = fit_attention(gpu_, rows);
      const AttentionCurve& fitted = gpu_.attention[direction == "backward" ? 1 : 0];
      return curve({efficiency(fitted.efficiency),
                    {"head_ramp", fmt::format("{:.4g}", tidy(fitted.head_ramp))},
                    {"streaming", fmt::format("{:.4g}", fitted.streaming)},
                    {"tail", fmt::format("{:.4g}", tidy(fitted.tail))}},
                   points, errors(gpu_, rows));
    });
  }

  // Kernels that were asked for by name, beside the one that the curves are of; where PyTorch
  // picked that, it is PyTorch's.
  void attention_kernels() {
    Points named;
    std::map<std::string, std::vector<double>> shares;
    for (const Point* point : select("attention")) {
      const Point* plain = without_method(*point);
      const std::string name = generation_of(*point);
      if (name.empty() || plain == nullptr) continue;
      named.push_back(point);
      shares[name].push_back(time_of(*plain) / time_of(*point));
    }
    fit("attention_kernels", named, [&](const Points& points) {
      Numbers numbers;
      for (const auto& [name, of] : shares) {
        numbers.emplace_back(name, fmt::format("{:.4g}", summarize(of).median));
      }
      std::vector<double> errors;
      for (const Point* point : points) {
        const double share = summarize(shares.at(generation_of(*point))).median;
        errors.push_back(time_of(*without_method(*point)) / (share * time_of(*point)) - 1);
      }
      return curve(std::move(numbers), points, errors);
    });
  }

  // The catalogue's name of a row's kernel and direction; empty where the row tells none.
  [[nodiscard]] std::string generation_of(const Point& point) const {
    const std::string method = point.parameter("method");
    const bool picked = method.empty() && measured_.fact("attention") == kPickedAttention;
    const char* kernel = picked              ? "sdpa"
                         : method == "flash" ? "flash_2"
                         : method == "cudnn" ? "cudnn"
                                             : nullptr;
    return kernel == nullptr ? "" : fmt::format("{}_{}", kernel, point.name);
  }

  [[nodiscard]] const Point* without_method(const Point& point) const {
    Parameters parameters = point.parameters;
    std::erase_if(parameters, [](const auto& entry) { return entry.first == "method"; });
    return measured_.find(make_key(point.group, point.name, parameters));
  }

  void collective(const std::string& name, CollectiveKind kind, const Points& of, Numbers more) {
    fit(name, of, [&](const Points& points) {
      const auto rows = rows_of(points, [kind](const Point& point) {
        return CollectiveRow{kind, static_cast<int>(whole(point, "ranks")), Bytes(point.bytes),
                             time_of(point)};
      });
      const CollectiveCurve fitted = fit_collective(rows);
      const std::vector<double> left = errors(fitted, rows);
      const bool stands = summarize(left).median <= kRefused;
      if (more.empty() && stands) node_.curves.at(static_cast<std::size_t>(kind)) = fitted;
      const Numbers numbers = collective_numbers(fitted);
      more.insert(more.end(), numbers.begin(), numbers.end());
      return curve(more, points, left);
    });
  }

  const Measurements& measured_;
  Gpu gpu_;
  Interconnect node_;
  Fitted result_;
};

}  // namespace

Numbers matmul_numbers(const Gpu& gpu) {
  const MatmulCurve& curve = gpu.matmul;
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  return {{"launch", in_microseconds(gpu.launch)},
          {"efficiency", number(curve.efficiency[0])},
          {"memory_efficiency", number(curve.memory_efficiency)},
          {"fill", number(curve.fill)},
          {"edge", number(tidy(curve.edge))},
          {"split", number(curve.split)},
          {"tail", number(tidy(curve.tail))},
          {"slowdown", number(tidy(curve.slowdown))},
          {"slowdown_gflop", number(curve.slowdown_flops.value() * 1e-9)}};
}

Numbers collective_numbers(const CollectiveCurve& curve) {
  return {{"base", in_microseconds(curve.base)},
          {"per_rank", in_microseconds(curve.per_rank)},
          {"bandwidth", in_gigabytes(curve.bandwidth)},
          {"ramp", in_kilobytes(curve.ramp)},
          {"own_share", fmt::format("{:.3g}", curve.own_share)}};
}

Fitted fit_measurements(const Measurements& measured, const Gpu& catalogue,
                        const Interconnect& node, int nvls_ranks) {
  Fitter fitter(measured, catalogue, node);
  fitter.kernels();
  fitter.host_copies();
  fitter.collectives(nvls_ranks);
  fitter.messages();
  fitter.collectives_between_nodes();
  fitter.host_and_spread();
  fitter.interference();
  fitter.by_size();
  return std::move(fitter).result();
}

}  // namespace pipesim::calibration
