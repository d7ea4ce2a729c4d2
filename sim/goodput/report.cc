#include "sim/goodput/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/core/text.h"
#include "sim/report/json/schema.h"
#include "sim/report/text/aligned.h"
#include "sim/report/text/band.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDay = 86400;
constexpr double kJoulesPerMwh = 3.6e9;

struct Term {
  const char* name;
  const char* words;
  Seconds RunTime::*seconds;
};
constexpr std::array kTerms{Term{"training", "training", &RunTime::training},
                            Term{"checkpoints", "checkpoints", &RunTime::checkpoints},
                            Term{"lost", "lost work", &RunTime::lost},
                            Term{"restarts", "restarts", &RunTime::restarts},
                            Term{"waiting", "waiting for nodes", &RunTime::waiting},
                            Term{"slow", "slow nodes", &RunTime::slow}};

std::string days(Seconds seconds) { return fmt::format("{:.2f}", seconds.value() / kDay); }

// "23.4 min", "5.2 h", "61 days".
std::string span(Seconds seconds) {
  const double value = seconds.value();
  if (value < 60) return fmt::format("{:.1f} s", value);
  if (value < 3600) return fmt::format("{:.1f} min", value / 60);
  if (value < kDay) return fmt::format("{:.1f} h", value / 3600);
  return fmt::format("{:.1f} days", value / kDay);
}

std::string interval_text(const Goodput& goodput) {
  const InterruptedRun& run = goodput.run;
  if (!goodput.daly && run.interval >= run.work) return "no checkpoint is needed: nothing fails\n";
  std::string text = fmt::format("a checkpoint of {}, {}, every {}", human(goodput.checkpoint_size),
                                 span(run.checkpoint), span(run.interval));
  text += goodput.interval_searched ? " (the best simulated" : " (as asked";
  if (goodput.daly) {
    text += fmt::format("; Young {}, Daly {}", span(*goodput.young), span(*goodput.daly));
  }
  return text + ")\n";
}

std::string costs_text(const Goodput& goodput) {
  std::string text = fmt::format("{} GPU-hours", significant(goodput.gpu_hours, 4));
  if (goodput.price) text += fmt::format(", price {}", significant(*goodput.price, 4));
  if (goodput.energy) {
    const GoodputEnergy& energy = *goodput.energy;
    const double whole = energy.total();
    text += fmt::format("; energy of GPUs {} MWh: busy {:.1f}%",
                        significant(whole / kJoulesPerMwh, 4), 100 * energy.busy / whole);
    for (size_t i = 0; i < energy.idle.size(); ++i) {
      if (energy.idle[i] < 0.0005 * whole) continue;
      std::string name(kIdleCauseNames[i]);
      std::ranges::replace(name, '_', ' ');
      text += fmt::format(", idle in {} {:.1f}%", name, 100 * energy.idle[i] / whole);
    }
    text += fmt::format(", repeated {:.1f}%, stopped {:.1f}%", 100 * energy.repeated / whole,
                        100 * energy.stopped / whole);
  }
  return text + "\n";
}

Json seconds_or_null(const std::optional<Seconds>& seconds) {
  return seconds ? Json(seconds->value()) : Json(nullptr);
}

Json energy_json(const std::optional<GoodputEnergy>& energy) {
  if (!energy) return nullptr;
  Json json{{"total", energy->total()}, {"busy", energy->busy}};
  for (size_t i = 0; i < energy->idle.size(); ++i) {
    json["idle"][std::string(kIdleCauseNames[i])] = energy->idle[i];
  }
  json["repeated"] = energy->repeated;
  json["stopped"] = energy->stopped;
  return json;
}

Json goodput_json(const Goodput& goodput) {
  const double between = goodput.mean_between_failures.value();
  Json json{{"schedule", goodput.name},
            {"gpus", goodput.gpus},
            {"nodes", goodput.nodes},
            {"work_seconds", goodput.run.work.value()},
            {"mean_seconds_between_failures", std::isfinite(between) ? Json(between) : nullptr},
            {"checkpoint_bytes", goodput.checkpoint_size.value()},
            {"checkpoint_seconds", goodput.run.checkpoint.value()},
            {"interval_seconds", goodput.run.interval.value()},
            {"young_seconds", seconds_or_null(goodput.young)},
            {"daly_seconds", seconds_or_null(goodput.daly)},
            {"seconds",
             {{"mean", goodput.mean.total().value()},
              {"p05", goodput.p05.value()},
              {"p50", goodput.p50.value()},
              {"p95", goodput.p95.value()}}}};
  for (const Term& term : kTerms) {
    json["mean_seconds_by_term"][term.name] = (goodput.mean.*term.seconds).value();
  }
  json["failures"] = goodput.failures;
  json["goodput"] = goodput.goodput;
  json["gpu_hours"] = goodput.gpu_hours;
  json["price"] = goodput.price ? Json(*goodput.price) : nullptr;
  json["energy_joules"] = energy_json(goodput.energy);
  return json;
}

}  // namespace

std::string goodput_text(const Goodput& goodput, const GoodputQuestion& question) {
  const std::string between = goodput.run.failure_rate > 0
                                  ? "a failure every " + span(goodput.mean_between_failures)
                                  : "no failures";
  std::string text =
      fmt::format("{}: {} billion tokens on {} GPUs ({} nodes), {}\n", goodput.name,
                  significant(question.tokens / 1e9, 4), goodput.gpus, goodput.nodes, between);
  text += interval_text(goodput);
  std::vector<Row> rows{{"term", "days", "share"}};
  for (const Term& term : kTerms) {
    const Seconds seconds = goodput.mean.*term.seconds;
    rows.push_back({term.words, days(seconds),
                    fmt::format("{:.1f}%", 100 * (seconds / goodput.mean.total()))});
  }
  rows.push_back({"in all", days(goodput.mean.total()), "100.0%"});
  text += aligned(rows);
  text += fmt::format("{} to {} days in nine of ten runs ({} runs, seed {}); {} failures\n",
                      days(goodput.p05), days(goodput.p95), question.runs, question.seed,
                      significant(goodput.failures, 3));
  return text + costs_text(goodput);
}

void write_goodput_json(std::ostream& out, std::span<const Goodput> all,
                        const GoodputQuestion& question, const std::string& version) {
  Json document{{"schema", kJsonSchema},     {"pipesim", {{"version", version}}},
                {"tokens", question.tokens}, {"runs", question.runs},
                {"seed", question.seed},     {"goodput", Json::array()}};
  for (const Goodput& each : all) document["goodput"].push_back(goodput_json(each));
  out << document.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace pipesim
