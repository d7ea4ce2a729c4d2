#include "validate/calibration/cpu/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

#include "sim/core/error.h"
#include "sim/runtime/blas.h"
#include "sim/runtime/layer_math.h"
#include "sim/runtime/stage_math.h"
#include "validate/calibration/compare_layers.h"

namespace pipesim::calibration {
namespace {

using Floats = std::vector<float>;

// Normal enough: sums of three uniform numbers.
Floats operand(std::int64_t size) {
  Floats values(static_cast<std::size_t>(size));
  std::uint32_t state = 12345;
  for (float& value : values) {
    value = -1.5F;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525U + 1013904223U;
      value += static_cast<float>(state >> 8U) / static_cast<float>(1U << 24U);
    }
  }
  return values;
}

// Time of this thread alone, free of other work on the core.
double processor_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

TimeSummary timed(int repetitions, const std::function<void()>& work) {
  work();
  std::vector<double> microseconds;
  for (int i = 0; i < repetitions; ++i) {
    const double start = processor_microseconds();
    work();
    microseconds.push_back(processor_microseconds() - start);
  }
  return summarize_times(std::move(microseconds));
}

// m x k by k x n in each pass as stages compute it.
std::function<void()> work_of(const MatmulSpec& spec) {
  using runtime::Turned;
  const int tokens = static_cast<int>(spec.tokens);
  const int in = static_cast<int>(spec.in);
  const int out = static_cast<int>(spec.out);
  if (spec.pass == MatmulPass::kForward) {
    return [=, x = operand(spec.tokens * spec.in), w = operand(spec.in * spec.out),
            y = Floats(spec.tokens * spec.out)]() mutable {
      runtime::multiply({tokens, out, in}, {x.data(), in}, {w.data(), out}, y.data(), out);
    };
  }
  if (spec.pass == MatmulPass::kInputGradient) {
    return [=, dy = operand(spec.tokens * spec.out), w = operand(spec.in * spec.out),
            dx = Floats(spec.tokens * spec.in)]() mutable {
      runtime::multiply({tokens, in, out}, {dy.data(), out}, {w.data(), out, Turned::kYes},
                        dx.data(), in);
    };
  }
  return [=, x = operand(spec.tokens * spec.in), dy = operand(spec.tokens * spec.out),
          dw = Floats(spec.in * spec.out)]() mutable {
    runtime::multiply({in, out, tokens, 1, 1}, {x.data(), in, Turned::kYes}, {dy.data(), out},
                      dw.data(), out);
  };
}

std::function<void()> work_of(const AttentionShape& shape, bool backward) {
  const runtime::AttentionSize size{static_cast<int>(shape.batch), static_cast<int>(shape.sequence),
                                    static_cast<int>(shape.heads),
                                    static_cast<int>(shape.head_dim)};
  const std::int64_t rows = shape.batch * shape.sequence;
  const std::int64_t width = shape.heads * shape.head_dim;
  return [=, qkv = operand(3 * rows * width), out = Floats(rows * width),
          lse = Floats(rows * shape.heads), dout = operand(rows * width),
          dqkv = Floats(3 * rows * width), ready = false]() mutable {
    if (!backward || !ready) runtime::attention(size, qkv, out, lse);
    ready = true;
    if (backward) runtime::attention_backward(size, qkv, out, lse, dout, dqkv);
  };
}

// Nothing for kernels that stages do not run.
std::function<void()> work_of(const KernelSpec& spec) {
  const std::int64_t size = spec.rows * spec.columns;
  Floats x = operand(size);
  Floats dy = operand(size);
  Floats y(static_cast<std::size_t>(size));
  Floats gain(static_cast<std::size_t>(spec.columns), 1);
  Floats dgain(gain.size());
  switch (spec.kernel) {
    case Kernel::kResidualAdd:
      return [=]() mutable { runtime::add(x, dy, y); };
    case Kernel::kRmsNormForward:
      return [=]() mutable { runtime::rms_norm(x, gain, y); };
    case Kernel::kRmsNormBackward:
      return [=]() mutable { runtime::rms_norm_backward(x, gain, dy, y, dgain); };
    case Kernel::kGeluForward:
      return [=]() mutable { runtime::gelu(x, y); };
    case Kernel::kGeluBackward:
      return [=]() mutable { runtime::gelu_backward(x, dy, y); };
    case Kernel::kCrossEntropyForward:
    case Kernel::kCrossEntropyBackward: {
      const std::vector<int> targets(static_cast<std::size_t>(spec.rows), 0);
      if (spec.kernel == Kernel::kCrossEntropyForward) {
        return [=]() mutable { (void)runtime::cross_entropy(x, targets); };
      }
      return [=]() mutable { runtime::cross_entropy_backward(x, targets, y); };
    }
    default:
      return {};
  }
}

// A layer's F, B and W as a stage of one layer runs them, one after the other.
std::vector<Point> measure_layer(const LayerSlice& slice, int repetitions) {
  const runtime::SmallModel model{transformer_of(slice.shape), static_cast<int>(slice.micro_batch),
                                  static_cast<int>(slice.sequence)};
  runtime::Ledger ledger;
  runtime::StageMath stage(model, {.first = 0, .layers = 1}, ledger);
  const Floats input = operand(slice.tokens() * slice.shape.hidden);
  std::array<std::vector<double>, 3> times;
  for (int i = 0; i <= repetitions; ++i) {
    std::array<double, 4> at{processor_microseconds()};
    const Floats output = stage.forward(0, input);
    at[1] = processor_microseconds();
    (void)stage.backward(0, output);
    at[2] = processor_microseconds();
    stage.weight_gradients(0);
    at[3] = processor_microseconds();
    for (std::size_t pass = 0; i > 0 && pass < times.size(); ++pass) {
      times[pass].push_back(at[pass + 1] - at[pass]);
    }
  }
  std::vector<Point> points;
  for (std::size_t pass = 0; pass < times.size(); ++pass) {
    points.push_back(point_with_shape(slice, "FBW"[pass]));
    points.back().time_us = summarize_times(std::move(times[pass]));
    points.back().launches_per_repetition = 1;
  }
  return points;
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Parameters facts() {
  return {{"device", "cpu core of " + processor()},
          {"multiprocessors", "1"},
          {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
          {"driver", "none"},
          {"blas", runtime::blas_version()},
          {"computed_in", "float32, where bytes count bf16; times are the thread's own"}};
}

}  // namespace

CpuPlan make_cpu_plan(int hidden, int sequence) {
  CpuPlan plan;
  const auto linear = [&plan](std::int64_t tokens, std::int64_t in, std::int64_t out) {
    for (const MatmulPass pass :
         {MatmulPass::kForward, MatmulPass::kInputGradient, MatmulPass::kWeightGradient}) {
      plan.matmuls.push_back({pass, Precision::kBf16, tokens, in, out});
    }
  };
  for (const int tokens : {sequence, 2 * sequence}) {
    for (const int width : {hidden, 3 * hidden, 4 * hidden}) linear(tokens, hidden, width);
    linear(tokens, 4 * hidden, hidden);
    linear(tokens, hidden, 2 * hidden);
    linear(tokens, hidden / 2, hidden);
  }
  for (const int out : {1024, 2048}) linear(1024, 1024, out);
  for (const int length : {sequence / 2, sequence, 2 * sequence}) {
    for (const int size : {32, 64}) {
      plan.attention.push_back(
          {1, std::max(1, hidden / 64), std::max(1, hidden / 64), length, size});
    }
  }
  for (const Kernel kernel : {Kernel::kResidualAdd, Kernel::kRmsNormForward,
                              Kernel::kRmsNormBackward, Kernel::kGeluForward, Kernel::kGeluBackward,
                              Kernel::kCrossEntropyForward, Kernel::kCrossEntropyBackward}) {
    const bool wide = kernel == Kernel::kGeluForward || kernel == Kernel::kGeluBackward;
    for (const int rows : {sequence, 2 * sequence}) {
      plan.kernels.push_back({kernel, rows, wide ? 4 * hidden : hidden});
    }
  }
  const std::int64_t heads = std::max(1, hidden / 64);
  for (const int length : {sequence, 2 * sequence}) {
    plan.layers.push_back({.shape = {.name = "small",
                                     .hidden = hidden / heads * heads,
                                     .feed_forward = 4 * hidden,
                                     .heads = heads,
                                     .kv_heads = heads,
                                     .head_dim = hidden / heads,
                                     .vocabulary = 0,
                                     .gated = false,
                                     .rms_norm = true,
                                     .dropout = false},
                           .tensor_parallel = 1,
                           .micro_batch = 1,
                           .sequence = length});
  }
  return plan;
}

Measurements measure_cpu(const CpuPlan& plan,
                         const std::function<void(const Measurements&)>& progress) {
  Measurements measured;
  measured.facts = facts();
  const auto add = [&](Point point, const std::function<void()>& work) {
    if (!work) return;
    point.time_us = timed(plan.repetitions, work);
    point.launches_per_repetition = 1;
    measured.points.push_back(std::move(point));
  };
  for (const MatmulSpec& spec : plan.matmuls) add(point_of(spec), work_of(spec));
  progress(measured);
  for (const AttentionShape& shape : plan.attention) {
    for (const bool backward : {false, true}) {
      add(point_of(shape, backward), work_of(shape, backward));
    }
  }
  progress(measured);
  for (const KernelSpec& spec : plan.kernels) add(point_of(spec), work_of(spec));
  progress(measured);
  for (const LayerSlice& slice : plan.layers) {
    std::ranges::move(measure_layer(slice, plan.repetitions), std::back_inserter(measured.points));
  }
  progress(measured);
  return measured;
}

}  // namespace pipesim::calibration
