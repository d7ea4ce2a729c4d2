// MFU of Tables 5 and 6 by the one-cell protocol: for each model one factor on all compute seconds,
// fitted to the baseline's run with the smallest vocabulary; every other cell is a prediction, with
// the passes that the artifact's runs on one host timed where the data has those.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>

#include "models/layer_work.h"
#include "models/redistributed.h"
#include "sim/anchor/fitted_factor.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/profile.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_parallelism {
namespace {

constexpr int kMicrobatches = 128;
// By which the tables divide: MFU of the runs on one host are their TFLOP/s over 3.2.
constexpr double kPeakFlops = 320e12;

TimedRun timed_run(const MethodRow& row, size_t vocabulary, const std::vector<HostRun>& runs,
                   const Hardware& hardware) {
  TimedRun run;
  run.model = row.with_vocabulary(vocabulary);
  run.hardware = hardware;
  run.schedule = row.schedule;
  run.chunks = row.chunks;
  run.devices = row.gpus;
  run.microbatches = kMicrobatches;
  run.vocabulary = row.placement;
  run.setting.context.seq_length = row.seq;
  run.setting.state.gradients_in_fp32 = false;
  run.setting.fused_backward = row.chunks == 1;
  run.setting.software = software_of_catalog(row.software);
  if (row.placement == VocabularyPlacement::kRedistributed) {
    for (const StageLayers& stage :
         redistributed_layout(run.model, row.seq, row.gpus * row.chunks).stages) {
      run.layers.push_back(stage.layers);
    }
  }
  run.profiled = profiled_of(row.placement, row.seq, runs, hardware);
  return run;
}

// Between iteration time and MFU in percent, either way.
double converted(const MethodRow& row, size_t vocabulary, double value) {
  const double flops =
      kMicrobatches * model_flops(row.with_vocabulary(vocabulary), row.seq, false).value();
  return 100 * flops / row.gpus / kPeakFlops / value;
}

// Values that the runs of a model share.
struct Stack {
  const MethodRow* fitted = nullptr;
  double factor = 1;
  int shortest = std::numeric_limits<int>::max();  // sequence of the model's rows
  std::string note;
};

class Throughput {
 public:
  Throughput(const std::vector<MethodRow>& rows, const std::vector<HostRun>& runs,
             const Hardware& hardware)
      : rows_(rows), runs_(runs), hardware_(hardware) {}

  // By the one cell alone, as predictions that nothing is held to.
  void compare_without_profile(std::vector<Cell>& cells) {
    for (const MethodRow& row : rows_) {
      for (size_t i = 0; i < row.mfu_percent.size(); ++i) {
        if (!number_at(row.mfu_percent, i) || !row.fault.empty()) continue;
        Cell cell = cell_of(row, i);
        if (stack_of(row).fitted == &row && i == 0) continue;
        cell.table = row.table + " MFU, nothing profiled";
        cell.must_agree = false;
        cell.median = 0;
        cells.push_back(cell);
      }
    }
  }

  // Nothing fitted or profiled.
  void compare_first_principles(std::vector<Cell>& cells) {
    for (const MethodRow& row : rows_) {
      for (size_t i = 0; i < row.mfu_percent.size(); ++i) {
        if (!number_at(row.mfu_percent, i) || !row.fault.empty()) continue;
        Cell cell = printed(row, i);
        cell.table = row.table + " MFU, first principles";
        cell.run = {fmt::format("{} {} GPUs", row.table, row.gpus),
                    fmt::format("seq {} vocabulary {}", row.seq, kVocabularies[i]), row.method};
        simulate(cell, [&] { return from_first_principles(row, i); });
        cells.push_back(cell);
      }
    }
    for (const MethodRow& row : rows_) {
      compare_gain(cells, row, ", first principles",
                   [this](const MethodRow& of, size_t i) { return from_first_principles(of, i); });
    }
  }

  void compare(std::vector<Cell>& cells) {
    for (const MethodRow& row : rows_) {
      for (size_t i = 0; i < row.mfu_percent.size(); ++i) {
        if (number_at(row.mfu_percent, i)) cells.push_back(cell_of(row, i));
      }
    }
    for (const MethodRow& row : rows_) {
      compare_gain(cells, row, "",
                   [this](const MethodRow& of, size_t i) { return simulated(of, i); });
    }
  }

 private:
  const Stack& stack_of(const MethodRow& row) {
    const auto [at, made] = stacks_.try_emplace({row.table, row.gpus});
    Stack& stack = at->second;
    if (!made) return stack;
    for (const MethodRow& each : rows_) {
      const bool alike = each.table == row.table && each.gpus == row.gpus;
      if (alike) stack.shortest = std::min(stack.shortest, each.seq);
      if (!alike || each.method != "Baseline" || !number_at(each.mfu_percent, 0)) continue;
      if (stack.fitted == nullptr || each.seq < stack.fitted->seq) stack.fitted = &each;
    }
    if (stack.fitted == nullptr) {
      stack.note = "no baseline to fit a factor to: factor 1";
      return stack;
    }
    fit(stack);
    return stack;
  }

  void fit(Stack& stack) {
    const MethodRow& row = *stack.fitted;
    try {
      const Seconds measured(converted(row, 0, *number_at(row.mfu_percent, 0)));
      TimedRun run = timed_run(row, 0, runs_, hardware_);
      stack.factor = fitted_factor(measured, [&run](double factor) {
        run.compute_factor = factor;
        return iteration_seconds(run);
      });
      stack.note = fmt::format("factor {:.3f}{}", stack.factor,
                               runs_.empty() ? ""
                                             : "; profiled on one host: F, BW, output, S, T, "
                                               "IF, IB");
      if (row.seq > stack.shortest) {
        stack.note += fmt::format(", fitted at seq {}, as there is no baseline at seq {}", row.seq,
                                  stack.shortest);
      }
    } catch (const InfeasibleError& error) {
      stack.note = fmt::format("{} cannot be fitted ({}): factor 1", row.text(0), error.what());
      stack.fitted = nullptr;
    }
  }

  double simulated(const MethodRow& row, size_t vocabulary) {
    TimedRun run = timed_run(row, vocabulary, runs_, hardware_);
    run.compute_factor = stack_of(row).factor;
    return converted(row, vocabulary, iteration_seconds(run).value());
  }

  double from_first_principles(const MethodRow& row, size_t vocabulary) {
    const TimedRun run = timed_run(row, vocabulary, runs_, hardware_);
    return converted(row, vocabulary, iteration_seconds(run).value());
  }

  static Cell printed(const MethodRow& row, size_t i) {
    Cell cell;
    cell.table = row.table + " MFU";
    cell.cell = row.text(i) + ", %";
    cell.published = *number_at(row.mfu_percent, i);
    cell.digits = 2;
    cell.relative = true;
    return cell;
  }

  Cell cell_of(const MethodRow& row, size_t i) {
    Cell cell = printed(row, i);
    cell.note = "not modelled: " + row.fault;
    if (!row.fault.empty()) return cell;
    const Stack& stack = stack_of(row);
    cell.note = stack.note;
    simulate(cell, [&] { return simulated(row, i); });
    const bool fitted = stack.fitted == &row && i == 0;
    if (fitted) cell.table += ", fitted";
    if (row.table == "Table 5" && stack.fitted != nullptr && !fitted && cell.simulated) {
      cell.must_agree = true;
      cell.median = 0.04;
    }
    return cell;
  }

  using Mfu = std::function<double(const MethodRow&, size_t)>;

  // Compares a share of the published gain, and points of MFU.
  void compare_gain(std::vector<Cell>& cells, const MethodRow& row, const std::string& how,
                    const Mfu& mfu) {
    if (row.method != "Vocab-1" || !row.fault.empty()) return;
    const auto base = std::ranges::find_if(rows_, [&row](const MethodRow& each) {
      return each.table == row.table && each.gpus == row.gpus && each.seq == row.seq &&
             each.method == "Baseline";
    });
    if (base == rows_.end()) return;
    for (size_t i = 0; i < row.mfu_percent.size(); ++i) {
      const auto with = number_at(row.mfu_percent, i);
      const auto without = number_at(base->mfu_percent, i);
      if (!with || !without) continue;
      Cell cell;
      cell.table = row.table + " gain of Vocab-1" + how;
      cell.cell = row.text(i) + " over Baseline, points of MFU";
      cell.published = *with - *without;
      cell.digits = 2;
      cell.relative = true;
      simulate(cell, [&] { return mfu(row, i) - mfu(*base, i); });
      cells.push_back(cell);
      cell.table = row.table + " points gained by Vocab-1" + how;
      cell.relative = false;
      cells.push_back(cell);
    }
  }

  const std::vector<MethodRow>& rows_;
  const std::vector<HostRun> runs_;
  const Hardware& hardware_;
  std::map<std::pair<std::string, int>, Stack> stacks_;  // by table and GPUs
};

}  // namespace

void compare_throughput(std::vector<Cell>& cells, const std::vector<MethodRow>& rows,
                        const std::vector<HostRun>& runs, const Hardware& hardware) {
  Throughput(rows, runs, hardware).compare(cells);
  if (!runs.empty()) Throughput(rows, {}, hardware).compare_without_profile(cells);
  Throughput(rows, {}, hardware).compare_first_principles(cells);
}

}  // namespace pipesim::vocabulary_parallelism
