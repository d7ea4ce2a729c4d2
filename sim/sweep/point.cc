#include "sim/sweep/point.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "sim/read/scenario.h"

namespace pipesim {
namespace {

std::string first_line_of(const std::string& text) {
  constexpr size_t kMost = 4000;
  return text.substr(0, std::min(kMost, text.find('\n')));
}

template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_text(std::string& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T value() {
    T read;
    std::memcpy(&read, take(sizeof(T)).data(), sizeof(T));
    return read;
  }
  std::string text() { return std::string(take(value<std::uint32_t>())); }

 private:
  std::string_view take(size_t count) {
    if (count > bytes_.size()) throw LogicError("a result of a sweep came in part");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(const PointResult& result) {
  std::string bytes;
  put(bytes, result.point);
  put(bytes, result.outcome);
  put(bytes, result.key);
  for (const auto& value : result.metrics) {
    put(bytes, value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  for (const std::string& text : result.choice) put_text(bytes, text);
  put_text(bytes, result.reason);
  return bytes;
}

PointResult point_from_bytes(std::string_view bytes) {
  Reader reader(bytes);
  PointResult result;
  result.point = reader.value<std::uint32_t>();
  result.outcome = reader.value<PointResult::Outcome>();
  result.key = reader.value<Fingerprint>();
  for (auto& value : result.metrics) {
    const auto number = reader.value<double>();
    if (number == number) value = number;
  }
  for (std::string& text : result.choice) text = reader.text();
  result.reason = reader.text();
  return result;
}

void Evaluator::open(std::uint32_t setting) {
  if (setting_ == setting) return;
  setting_.reset();
  cases_.clear();
  // Not assigned: yaml-cpp would keep the old document's memory together with the new one's.
  source_.emplace(sweep_.source(setting));
  try {
    cases_ = prepare_all(std::make_shared<const Scenario>(read_scenario(*source_)));
  } catch (const InputError&) {  // perhaps of one schedule alone
  }
  setting_ = setting;
}

const Engine& Evaluator::engine_for(const Scenario& scenario) {
  const auto same = [](const SpeedChange& a, const SpeedChange& b) {
    return a.rank == b.rank && a.at_seconds == b.at_seconds && a.factor == b.factor;
  };
  const bool fits = engine_ && engine_kind_ == scenario.engine && engine_gpu_ == scenario.gpu &&
                    std::ranges::equal(engine_changes_, scenario.perturb.stragglers, same);
  if (!fits) {
    // A process of a sweep is one of many.
    engine_ = make_engine(scenario, 1);
    engine_kind_ = scenario.engine;
    engine_gpu_ = scenario.gpu;
    engine_changes_ = scenario.perturb.stragglers;
  }
  return *engine_;
}

void Evaluator::evaluate(std::uint32_t point, PointResult& result) {
  const std::uint32_t schedule = sweep_.schedule(point);
  result.choice.front() = Sweep::schedule_name(*source_, schedule);
  result.key = sweep_.key(*source_, schedule);
  const auto simulate_one = [&](const Prepared& prepared) {
    result.choice = columns_of(prepared.choice);
    const Case& made = prepared.get();
    const Scenario& scenario = *made.scenario;
    result.metrics =
        metrics_of(scenario, simulate(made, &engine_for(scenario), &reuse_, Detail::kNumbers));
  };
  if (!cases_.empty()) return simulate_one(cases_.at(schedule));
  const YamlSource alone = sweep_.source(sweep_.setting(point), schedule);
  simulate_one(prepare_all(std::make_shared<const Scenario>(read_scenario(alone))).front());
}

PointResult Evaluator::operator()(std::uint32_t point) {
  PointResult result;
  result.point = point;
  try {
    open(sweep_.setting(point));
    evaluate(point, result);
  } catch (const InputError& error) {
    result.outcome = PointResult::Outcome::kRefused;
    result.reason = first_line_of(error.message());
  } catch (const InfeasibleError& error) {
    result.outcome = PointResult::Outcome::kRefused;
    result.reason = first_line_of(error.what());
  } catch (const std::bad_alloc&) {
    result.outcome = PointResult::Outcome::kFault;
    result.reason = "not enough memory";
  } catch (const std::exception& error) {
    result.outcome = PointResult::Outcome::kFault;
    result.reason = std::string("internal error: ") + first_line_of(error.what());
  }
  return result;
}

}  // namespace pipesim
