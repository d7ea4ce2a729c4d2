// MFU of Tables 5 and 6 by the one-cell protocol: for each model one factor on all compute seconds,
// fitted to the baseline's run with the smallest vocabulary; every other cell is a prediction, with
// the passes that the artifact's runs on one host timed where the data has those.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>

#include "models/layer_work.h"
#include "sim/anchor/fitted_factor.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/profile.h"
#include "validate/papers/vocabulary_parallelism/split.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_parallelism {
namespace {

constexpr int kMicrobatches = 128;
// By which the tables divide: MFU of the runs on one host are their TFLOP/s over 3.2.
constexpr double kPeakFlops = 320e12;

// Redistributed, the last stage has as many layers as leave the stage that computes most as little
// as can be, none moved in vain; the others share the rest, later ones taking what does not divide.
std::vector<int> redistributed(const Transformer& model, int seq, int stages) {
  const double layer = 72.0 * model.hidden_size + 12.0 * seq;  // flops, per token and h
  const double output = 6.0 * model.vocab_size;
  const int others = stages - 1;
  const auto most = [&](int last) {
    const int rest = (model.num_layers - last + others - 1) / others;
    return std::max(last * layer + output, rest * layer);
  };
  int best = model.num_layers / stages;
  for (int last = best; last >= 0; --last) {
    if (most(last) < most(best)) best = last;
  }
  return split_with_last(model.num_layers, best, stages);
}

// Whether the run is the row's, with its vocabulary.
bool is_of(const HostRun& run, const MethodRow& row, size_t vocabulary) {
  return run.fault.empty() && run.placement == row.placement && run.devices == row.gpus &&
         run.seq == row.seq && run.model.vocab_size == kVocabularies[vocabulary];
}

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
  if (row.placement == VocabularyPlacement::kRedistributed) {
    run.layers = redistributed(run.model, row.seq, row.gpus * row.chunks);
    for (const HostRun& known : runs) {
      if (!is_of(known, row, vocabulary)) continue;
      run.layers = split_with_last(run.model.num_layers, known.last_layers, row.gpus);
    }
  }
  run.profiled = profiled_of(row.placement, runs, hardware);
  return run;
}

// Between iteration time and MFU in percent, either way.
double converted(const MethodRow& row, size_t vocabulary, double value) {
  const double flops =
      kMicrobatches * model_flops(row.with_vocabulary(vocabulary), row.seq, false).value();
  return 100 * flops / row.gpus / kPeakFlops / value;
}

// What does not change over the runs of a model.
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
        simulate(cell, [&] {
          TimedRun run = timed_run(row, i, runs_, hardware_);
          run.setting.software = software_of_catalog("megatron-deepspeed-2023");
          return converted(row, i, iteration_seconds(run).value());
        });
        cells.push_back(cell);
      }
    }
  }

  void compare(std::vector<Cell>& cells) {
    for (const MethodRow& row : rows_) {
      for (size_t i = 0; i < row.mfu_percent.size(); ++i) {
        if (number_at(row.mfu_percent, i)) cells.push_back(cell_of(row, i));
      }
    }
    for (const MethodRow& row : rows_) compare_gain(cells, row);
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
                                               "IF, IB, last layers of Redis");
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

  // In points of MFU.
  void compare_gain(std::vector<Cell>& cells, const MethodRow& row) {
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
      cell.table = row.table + " gain of Vocab-1";
      cell.cell = row.text(i) + " over Baseline, points of MFU";
      cell.published = *with - *without;
      cell.digits = 2;
      cell.relative = true;
      cell.within = 5;
      cell.must_agree = row.table == "Table 5" && stack_of(row).fitted != nullptr;
      simulate(cell, [&] { return simulated(row, i) - simulated(*base, i); });
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
