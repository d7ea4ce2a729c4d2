#include "sim/report/text/block.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "sim/planning/block_figures.h"

namespace pipesim {
namespace {

char letter(PassKind kind, bool marked) {
  const char capital = kind == PassKind::kBW ? 'X' : to_text(kind).front();
  return marked ? capital : static_cast<char>(std::tolower(static_cast<unsigned char>(capital)));
}

std::string figures_text(const BlockFigures& figures, bool tightened) {
  std::string text = fmt::format("period: {} slots\n", figures.period);
  text += "device  busy slots  lifespan  lifespan/period  in flight\n";
  for (size_t d = 0; d < figures.devices.size(); ++d) {
    const BlockFigures::Device& device = figures.devices[d];
    text += fmt::format("{:<6}  {:>10}  {:>8}  {:>15.2f}  {:>9}\n", d, device.busy, device.lifespan,
                        static_cast<double>(device.lifespan) / static_cast<double>(figures.period),
                        device.in_flight);
  }
  const long bubble = figures.span - figures.work;
  text += fmt::format(
      "bubble: at most {} of {} slots ({:.2f}%) where passes take as long as their "
      "slots\n",
      bubble, figures.span, 100 * static_cast<double>(bubble) / static_cast<double>(figures.span));
  if (tightened) {
    text += fmt::format("tightened ramps hold at most {} chunks on any device\n",
                        figures.most_in_flight());
  }
  return text;
}

// The passes of a round, without those of a vocabulary that is not shared.
std::string round_text(const RulePhase& phase, bool shares) {
  const auto text_of = [](const RulePass& pass) {
    return fmt::format("{}{}", to_text(pass.kind),
                       pass.chunk ? fmt::format("{}", *pass.chunk) : "");
  };
  std::vector<std::string> passes;
  for (const RuleStep& step : phase.steps) {
    if (is_vocabulary(step.pass.kind) && !shares) continue;
    passes.push_back(text_of(step.pass) + (step.beside ? "&" + text_of(*step.beside) : ""));
  }
  const std::string round = fmt::format("{}", fmt::join(passes, " "));
  return passes.size() == 1 ? round : "(" + round + ")";
}

// Figures are of lifespans, from F to the last pass that needs what it made.
std::string copies_text(const Description& description) {
  return description.copies.empty() ? "" : "in flight: with what waits on the host (copies)\n";
}

}  // namespace

std::string rounds_text(const Description& description, const Problem& problem) {
  const DeviceRules& rules = *description.rules;
  const bool shares = is_sharded(problem.vocabulary);
  const auto figures = figures_of_rules(rules, values_of(description, problem), problem);
  std::string text = "device  in flight  rounds\n";
  for (size_t d = 0; d < figures.size(); ++d) {
    std::vector<std::string> phases;
    for (size_t i = 0; i < rules.phases.size(); ++i) {
      const long rounds = figures[d].rounds[i];
      if (rounds == 0) continue;
      phases.push_back(fmt::format("{} x{}", round_text(rules.phases[i], shares), rounds));
    }
    text += fmt::format("{:<6}  {:>9}  {}\n", d, figures[d].in_flight, fmt::join(phases, ", "));
  }
  text += copies_text(description);
  return text;
}

std::string draw_block(const Description& description, const Problem& problem, int columns) {
  const Slotted slotted = with_weights(instantiate(description, problem));
  const int marked = problem.shape.microbatches / 2;
  std::vector<std::string> rows(static_cast<size_t>(problem.shape.devices));
  const auto ends = ends_of(slotted);
  bool cut = false;
  for (size_t i = 0; i < slotted.passes.size(); ++i) {
    const SlottedPasses& passes = slotted.passes[i];
    std::string& row = rows[static_cast<size_t>(problem.placement.device(passes.vs))];
    const int first = problem.placement.first_unit(passes.vs, problem.shape.units());
    for (size_t unit = 0; unit < passes.slots.size(); ++unit) {
      const int end = std::min(ends[i][unit], columns);
      cut = cut || end < ends[i][unit];
      if (end > static_cast<int>(row.size())) row.resize(static_cast<size_t>(end), '.');
      const bool is_marked = (first + static_cast<int>(unit)) / problem.shape.splits == marked;
      for (int slot = passes.slots[unit]; slot < end; ++slot) {
        char& drawn = row[static_cast<size_t>(slot)];
        if (std::isupper(static_cast<unsigned char>(drawn)) != 0) continue;
        drawn = drawn == '.' || is_marked ? letter(passes.kind, is_marked) : '&';
      }
    }
  }
  std::string text;
  for (size_t d = 0; d < rows.size(); ++d) text += fmt::format("{} |{}|\n", d, rows[d]);
  text += fmt::format("microbatch {} in capitals{}{}\n", marked,
                      slotted.beside_forward.empty() ? "" : "; & an F and a backward as one block",
                      cut ? fmt::format("; slots beyond {} are left out", columns) : "");
  if (problem.shape.splits > 1) return text;
  return text + figures_text(figures_of(description, problem), description.tightened.any()) +
         copies_text(description);
}

}  // namespace pipesim
