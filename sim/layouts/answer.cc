#include "sim/layouts/answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/text.h"
#include "sim/core/wrapped.h"
#include "sim/layouts/switches.h"
#include "sim/layouts/words.h"
#include "sim/report/text/band.h"

namespace pipesim {
namespace {

// "154 days (141 to 170)": with the ends of its band, in digits that it leaves sure. A value
// outside of its band is "13 days simulated, 14 to 23 as measured runs went".
std::string with_band(const std::optional<Band>& band, double value, std::string_view unit) {
  const int digits = digits_of(band);
  std::string text = fmt::format("{} {}", significant(value, digits), unit);
  if (!band) return text;
  const std::string ends = fmt::format("{} to {}", significant(band->low * value, digits),
                                       significant(band->high * value, digits));
  const bool inside = band->low <= 1 && band->high >= 1;
  return text + (inside ? fmt::format(" ({})", ends)
                        : fmt::format(" simulated, {} as measured runs went", ends));
}

std::string time_text(const ClusterPlan& plan, const Planned& first, std::optional<double> tokens) {
  const auto& band = question_of(plan, first).base.band;
  if (!tokens) {
    const double rate = first.iteration / first.expected() * first.tokens_per_second_per_gpu;
    return with_band(band, first.expected().value(), "s an iteration") + ", " +
           significant(rate, digits_of(band)) + " tokens/s/GPU";
  }
  const PlanBudget budget = budget_of(plan.question, first, *tokens);
  std::string text = with_band(band, budget.days, "days");
  if (plan.days_with_failures) {
    text += fmt::format(", {} with failures",
                        significant(*plan.days_with_failures, compared_digits(band)));
  }
  if (plan.price) text += ", " + money_text(budget.gpu_hours * *plan.price, digits_of(band));
  return text;
}

std::string memory_text(const ClusterPlan& plan, const Planned& first) {
  if (first.fits != MemoryFit::kYes)
    return "memory may not fit: it is within its band of the limit";
  return fmt::format("memory fits with {} to spare", room_text(plan.question.limit() - first.peak));
}

// A row of the table.
struct Line {
  const ClusterPlan* plan;
  const Planned* planned;
  std::string number;
  std::string idea;
};

std::string words_of(const Baseline& baseline) {
  if (!baseline.file.empty()) return std::filesystem::path(baseline.file).filename().string();
  return baseline.run.empty() ? "baseline" : "published recipe";
}

std::vector<Line> lines_of(std::span<const ClusterPlan> plans) {
  std::vector<Line> lines;
  for (const ClusterPlan& plan : plans) {
    size_t number = 0;
    for (const Planned& planned : plan.result.best) {
      lines.push_back({&plan, &planned, fmt::format("{}", ++number), planned.idea});
    }
    if (plan.baseline && !plan.result.best.empty()) {
      lines.push_back({&plan, &plan.baseline->planned, "0", words_of(*plan.baseline)});
    }
  }
  return lines;
}

struct Asked {
  std::optional<double> tokens;
  bool causal;  // MFU, of all rows alike
};

struct Column {
  const char* name;
  int rank;  // the least stands first where there is not room for all
  bool left;
  std::string (*text)(const Line& line, const Asked& asked);
};

int digits_of_row(const Line& line) {
  return compared_digits(question_of(*line.plan, *line.planned).base.band);
}

template <int PlanPoint::*kSize>
std::string size_text(const Line& line, const Asked& /*asked*/) {
  return fmt::format("{}", line.planned->point.*kSize);
}

PlanBudget budget_of_line(const Line& line, const Asked& asked) {
  return budget_of(line.plan->question, *line.planned, *asked.tokens);
}

// Nothing stands where a column does not apply; it is left out where no row has anything.
constexpr std::array kColumns{
    Column{"", 0, false, [](const Line& line, const Asked&) { return line.number; }},
    Column{"cluster", 1, true, [](const Line& line, const Asked&) { return name_of(*line.plan); }},
    Column{"idea", 2, true, [](const Line& line, const Asked&) { return line.idea; }},
    Column{"tp", 5, false, size_text<&PlanPoint::tensor>},
    Column{"cp", 5, false, size_text<&PlanPoint::context>},
    Column{"ep", 5, false, size_text<&PlanPoint::expert>},
    Column{"etp", 5, false, size_text<&PlanPoint::expert_tensor>},
    Column{"pp", 5, false, size_text<&PlanPoint::pipeline>},
    Column{"vpp", 5, false,
           [](const Line& line, const Asked&) { return chunks_text(*line.planned); }},
    Column{"dp", 12, false, size_text<&PlanPoint::data>},
    Column{"mbs", 5, false, size_text<&PlanPoint::micro_batch>},
    Column{"with", 6, true,
           [](const Line& line, const Asked&) {
             return extras_of(question_of(*line.plan, *line.planned), line.planned->point);
           }},
    Column{"iteration", 3, false,
           [](const Line& line, const Asked&) {
             return human(line.planned->expected(), digits_of_row(line));
           }},
    Column{"days", 3, false,
           [](const Line& line, const Asked& asked) {
             if (!asked.tokens) return std::string();
             return significant(budget_of_line(line, asked).days, digits_of_row(line));
           }},
    Column{"price", 4, false,
           [](const Line& line, const Asked& asked) {
             if (!asked.tokens || !line.plan->price) return std::string();
             return money_text(budget_of_line(line, asked).gpu_hours * *line.plan->price,
                               digits_of_row(line));
           }},
    Column{"tokens/s/GPU", 9, false,
           [](const Line& line, const Asked&) {
             const Planned& planned = *line.planned;
             return significant(
                 planned.iteration / planned.expected() * planned.tokens_per_second_per_gpu,
                 digits_of_row(line));
           }},
    Column{"MFU", 10, false,
           [](const Line& line, const Asked& asked) {
             const Planned& planned = *line.planned;
             const double mfu = asked.causal ? planned.mfu_causal : planned.mfu;
             return fmt::format("{:.0f}%", 100 * (planned.iteration / planned.expected()) * mfu);
           }},
    Column{"free", 7, false,
           [](const Line& line, const Asked&) {
             const std::string left = room_text(line.plan->question.limit() - line.planned->peak);
             if (line.planned->fits == MemoryFit::kNo) return std::string("none");
             return line.planned->fits == MemoryFit::kYes ? left : "tight";
           }},
    Column{"runs on", 8, true,
           [](const Line& line, const Asked&) { return frameworks_text(line.planned->runs_on); }}};

// Sizes that are one in all rows say nothing.
bool says_something(const std::vector<std::string>& cells) {
  return std::ranges::any_of(cells, [](const std::string& each) { return !each.empty(); }) &&
         !std::ranges::all_of(cells, [](const std::string& each) { return each == "1"; });
}

std::vector<std::string> lines_of_cell(const std::string& cell) {
  std::vector<std::string> lines;
  std::istringstream text(cell);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

struct Shown {
  const Column* column;
  std::vector<std::string> cells;  // the header first
  size_t width = 0;

  void measure() {
    width = 0;
    for (const std::string& cell : cells) {
      for (const std::string& line : lines_of_cell(cell)) width = std::max(width, line.size());
    }
  }
  // Each of several ideas on a line of its own.
  void fold() {
    for (std::string& cell : cells) {
      for (size_t at = 0; (at = cell.find(", ", at)) != std::string::npos;) cell[++at] = '\n';
    }
    measure();
  }
  [[nodiscard]] bool is(std::string_view name) const { return name == column->name; }
};

// Columns with something to say, in their order on the page.
std::vector<Shown> columns_of(const std::vector<Line>& lines, const Asked& asked, bool clusters) {
  std::vector<Shown> all;
  for (const Column& column : kColumns) {
    if (!clusters && column.rank == 1) continue;
    const bool causal = asked.causal && std::string_view(column.name) == "MFU";
    Shown shown{&column, {causal ? "MFU, causal" : column.name}};
    for (const Line& line : lines) shown.cells.push_back(column.text(line, asked));
    const std::vector<std::string> cells(shown.cells.begin() + 1, shown.cells.end());
    if (column.rank > 0 && !says_something(cells)) continue;
    shown.measure();
    all.push_back(std::move(shown));
  }
  return all;
}

// The most important columns that fit `width` characters, in their order on the page.
std::vector<Shown> within(std::vector<Shown> all, size_t width) {
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return all[i].column->rank; });
  std::vector<bool> kept(all.size());
  size_t used = 0;
  for (const size_t i : order) {
    const size_t more = all[i].width + (used > 0 ? 2 : 0);
    if (used + more > width) continue;
    used += more;
    kept[i] = true;
  }
  std::vector<Shown> shown;
  for (size_t i = 0; i < all.size(); ++i) {
    if (kept[i]) shown.push_back(std::move(all[i]));
  }
  return shown;
}

// Without what else a layout has, two rows may look alike: ideas make room for it.
std::vector<Shown> columns_within(std::vector<Shown> all, size_t width) {
  const auto has_extras = [](const std::vector<Shown>& columns) {
    return std::ranges::any_of(columns, [](const Shown& each) { return each.is("with"); });
  };
  std::vector<Shown> shown = within(all, width);
  if (has_extras(shown) || !has_extras(all)) return shown;
  for (Shown& each : all) {
    if (each.is("idea")) each.fold();
  }
  return within(std::move(all), width);
}

std::string row_text(const std::vector<Shown>& columns, size_t row) {
  std::vector<std::vector<std::string>> cells;
  size_t most = 1;
  for (const Shown& each : columns) {
    cells.push_back(lines_of_cell(each.cells[row]));
    most = std::max(most, cells.back().size());
  }
  std::string text;
  for (size_t i = 0; i < most; ++i) {
    std::string line;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string cell = i < cells[c].size() ? cells[c][i] : "";
      line += columns[c].column->left ? fmt::format("{:<{}}", cell, columns[c].width)
                                      : fmt::format("{:>{}}", cell, columns[c].width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string table_text(std::span<const ClusterPlan> plans, std::optional<double> tokens,
                       size_t width) {
  const std::vector<Line> lines = lines_of(plans);
  if (lines.empty()) return "";
  const Asked asked{
      tokens, std::ranges::any_of(lines, [](const Line& line) { return line.planned->causal(); })};
  const auto columns = columns_within(columns_of(lines, asked, plans.size() > 1), width);
  std::string text;
  for (size_t row = 0; row <= lines.size(); ++row) text += row_text(columns, row);
  return text;
}

std::string how_sure(const ClusterPlan& plan) {
  const auto& band = question_of(plan, plan.result.best.front()).base.band;
  std::string text =
      band ? fmt::format(
                 "Four of five measured runs like it took {:.2f} to {:.2f} times as long "
                 "({} {}: {})",
                 band->low, band->high, band->rows, band->rows == 1 ? "run" : "runs", band->group)
           : "No measured run is near, so how far off these times are is not known";
  const std::string tied = tied_places(plan);
  if (tied.find_first_of(" ,") != std::string::npos) {
    text += fmt::format("; rows {} cannot be told apart", tied);
  }
  return text + ".";
}

std::string what_limits(const Planned& first) {
  std::vector<std::string> losses;
  for (const auto& [share, part] : largest_losses(first)) {
    losses.push_back(fmt::format("{} {:.0f}%", words_of(share), 100 * part));
  }
  if (losses.empty()) return "";
  return fmt::format("The model's FLOPs at the GPU's peak are {:.0f}% of the time; {}.",
                     100 * first.share(PlanShare::kModel), fmt::join(losses, ", "));
}

const Planned& fastest_by_replay(const ClusterPlan& plan) {
  return *std::ranges::min_element(plan.result.best, {}, &Planned::rank_by_replay);
}

// How much less time a row takes. Times of one engine are compared.
double gain_over(const Planned& first, const Planned& row) {
  const bool both = first.contended && row.contended;
  return 1 - (both ? row.expected() / first.expected() : row.iteration / first.iteration);
}

// The change that saves most, among those that were searched.
std::string what_helps(const ClusterPlan& plan) {
  const auto& best = plan.result.best;
  const auto beyond = std::ranges::find_if(best, is_beyond);
  if (beyond != best.end()) {
    const double gain = gain_over(best.front(), *beyond);
    if (gain > kWorthSaying) {
      return fmt::format("Row {} takes {:.0f}% less with {}: no framework runs it.",
                         beyond - best.begin() + 1, 100 * gain,
                         extras_of(question_of(plan, *beyond), beyond->point));
    }
  }
  const PlanWhatIf* largest = nullptr;
  for (const PlanWhatIf& each : plan.what_ifs) {
    if (each.best.empty()) continue;
    if (largest == nullptr || each.best.front().iteration < largest->best.front().iteration) {
      largest = &each;
    }
  }
  if (largest != nullptr) {
    const double gain = 1 - largest->best.front().iteration / fastest_by_replay(plan).iteration;
    if (gain > kWorthSaying) {
      return fmt::format("{} would save {:.0f}%.", largest->change(), 100 * gain);
    }
  }
  if (plan.result.counts.faster_with_memory == 0) return "";
  return fmt::format("More than {} of memory might help: layouts that need it may be faster.",
                     human(plan.question.limit()));
}

// A line for each change that was searched, against the fastest by replay.
std::string changes_text(std::span<const ClusterPlan> plans, size_t width) {
  std::string text;
  for (const ClusterPlan& plan : plans) {
    if (plan.result.best.empty()) continue;
    const Planned& first = fastest_by_replay(plan);
    for (const PlanWhatIf& each : plan.what_ifs) {
      std::string line = fmt::format("{:>10}  {:>7}  ", "-", "-");
      std::string layout = "nothing fits";
      if (!each.best.empty()) {
        const Planned& best = each.best.front();
        line = fmt::format("{:>10}  {:>+6.1f}%  ",
                           human(best.iteration, compared_digits(each.question.base.band)),
                           100 * (best.iteration / first.iteration - 1));
        layout = layout_words(each.question, best.point);
      }
      const size_t indent = line.size();
      std::string words = plans.size() > 1 ? name_of(plan) + ", " : "";
      words += fmt::format("{}: {}", each.change(), layout);
      std::istringstream lines(wrapped(words, width - std::min(width - 1, indent)));
      for (std::string part; std::getline(lines, part); line.assign(indent, ' ')) {
        text += line + part + "\n";
      }
    }
  }
  return text.empty() ? ""
                      : fmt::format("{:>10}  {:>7}  what if\n{}\n", "iteration", "change", text);
}

// " in fp8", where a precision is asked for.
std::string precision_text(const PlanQuestion& question) {
  const auto precision =
      std::ranges::find(question.settings, "memory.precision", &PlanSetting::path);
  return precision == question.settings.end() ? std::string()
                                              : fmt::format(" in {}", precision->value);
}

}  // namespace

const ClusterPlan* fastest_plan(std::span<const ClusterPlan> plans) {
  const ClusterPlan* best = nullptr;
  for (const ClusterPlan& plan : plans) {
    if (plan.result.best.empty()) continue;
    const Seconds seconds = plan.result.best.front().expected();
    if (best == nullptr || seconds < best->result.best.front().expected()) best = &plan;
  }
  return best;
}

std::string answer_sentence(std::span<const ClusterPlan> plans, std::optional<double> tokens) {
  const ClusterPlan* plan = fastest_plan(plans);
  if (plan == nullptr) return "";
  const Planned& first = plan->result.best.front();
  const PlanQuestion& question = plan->question;
  return fmt::format("{} {}{}: {}, {}: {}; {}.", fmt::group_digits(question.gpus),
                     gpu_text(question.base.hardware->gpu.name), precision_text(question),
                     runs_text(first), layout_words(question_of(*plan, first), first.point),
                     time_text(*plan, first, tokens), memory_text(*plan, first));
}

std::string plan_answer(std::span<const ClusterPlan> plans, std::optional<double> tokens,
                        size_t width) {
  std::string text;
  if (std::ranges::any_of(plans, [](const ClusterPlan& plan) { return plan.result.stopped; })) {
    text = "INCOMPLETE: the search was ended early; these are the best layouts so far\n";
  }
  const ClusterPlan* plan = fastest_plan(plans);
  if (plan == nullptr) return text;
  text += wrapped(answer_sentence(plans, tokens), width) + "\n\n" +
          table_text(plans, tokens, width) + "\n" + changes_text(plans, width);
  const Planned& first = plan->result.best.front();
  std::string below = how_sure(*plan);
  for (const std::string& more : {what_limits(first), what_helps(*plan)}) {
    if (!more.empty()) below += " " + more;
  }
  text += wrapped(below, width) + "\n";
  const std::string set = switches_text(question_of(*plan, first));
  if (!set.empty()) text += wrapped("Switches that the first row has: " + set, width) + "\n";
  return text;
}

}  // namespace pipesim
