// check_schedule NAME: holds one schedule, or all of one file of schedules/, to what its record
// says, and draws it for four devices and eight microbatches. tools/check_schedule builds and runs
// it.
//
// Exit codes: 0 it keeps to its record, 1 it does not, 2 there is no such schedule.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <sstream>

#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr int kColumns = 110;
constexpr int kMostShapes = 8;  // tried one after the other, each the nearest to the one before

// "zb_h1" of schedules/zb_h1.cc.
std::string stem_of(const Schedule& schedule) {
  return std::filesystem::path(schedule.file).stem().string();
}

std::vector<const Schedule*> asked_for(std::string name) {
  if (name.starts_with("schedules/")) name.erase(0, std::string("schedules/").size());
  if (name.ends_with(".cc")) name.erase(name.size() - 3);
  std::vector<const Schedule*> of_file = records_of(name);
  if (!of_file.empty()) return of_file;
  for (const Schedule* schedule : schedules()) {
    if (stem_of(*schedule) == name) of_file.push_back(schedule);
  }
  if (of_file.empty()) {
    std::cerr << fmt::format("check_schedule: no schedule '{}'{}\n", name,
                             suggestion(name, schedule_names()));
  }
  return of_file;
}

// Equal work of every device: F = B = W = 1 s for a microbatch on a whole device.
Problem example(const Schedule& schedule, const Shape& shape) {
  Problem problem;
  problem.shape = shape;
  problem.placement = schedule.place(shape.devices, shape.chunks);
  const double part = problem.placement.directions() / (1.0 * shape.chunks * shape.splits);
  StageCost cost;
  cost.forward = cost.backward_input = cost.backward_weight = Seconds(part);
  cost.overlapped = Seconds(3 * part);
  cost.activation = cost.weight_stash = Bytes(part);
  cost.copy_out = cost.copy_in = Seconds(part / 2);
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  return problem;
}

// At the nearest shape that it accepts; nothing where it accepts none that it names.
std::optional<Problem> accepted_example(const Schedule& schedule) {
  Shape shape{4, schedule.default_chunks, 8, schedule.default_splits};
  for (int shapes = 0; shapes < kMostShapes; ++shapes) {
    Problem problem = example(schedule, shape);
    const auto refusal = schedule.refusal(problem);
    if (!refusal) return problem;
    std::cout << fmt::format("  not drawn at p = {}, m = {}: {}\n", shape.devices,
                             shape.microbatches, refusal->reason);
    shape = refusal->nearest;
  }
  return std::nullopt;
}

// When every pass runs, by the arithmetic of `evaluate`.
class Drawing {
 public:
  using Value = double;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  Drawing(const Program& program, const Problem& problem)
      : program_(program),
        problem_(problem),
        clocks_(problem.shape.devices),
        lines_(clocks_.size()) {
    if (program.copies() != nullptr) links_.resize(program.copies()->links.size());
    const double seconds = evaluate(program, problem).makespan.value();
    columns_per_second_ = kColumns / seconds;
    for (std::string& line : lines_) line.assign(kColumns, '.');
    walk(program, *this);
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    double& clock = clocks_[device];
    const double start = std::max({clock, input, gradient});
    clock = start + pass_seconds(problem_, program_, device, pass).value();
    write(lines_[device], pass, start, clock);
    return clock;
  }
  Value deliver(Value result, PassKind, int, int, std::uint32_t) { return result; }
  Value join(Barrier, std::uint32_t, std::span<const Value> all) { return std::ranges::max(all); }
  [[nodiscard]] Value last(int device) const { return clocks_[device]; }
  void hold(int device, Value until) { clocks_[device] = std::max(clocks_[device], until); }
  void await(int device, Value until) { hold(device, until); }
  Value copy(const Copy& copy, bool out, Value a, Value b) {
    double& link = links_[program_.copies()->link_of(copy.device)][out ? 0 : 1];
    link = std::max({link, a, b}) + copy_seconds(problem_, program_, copy, out).value();
    return link;
  }

 private:
  void write(std::string& line, const Pass& pass, double start, double end) const {
    const auto column = [&](double at) {
      return std::min(kColumns, static_cast<int>(std::lround(at * columns_per_second_)));
    };
    const bool overlapped = pass.kind == PassKind::kFB;
    const char letter = overlapped                   ? '&'
                        : pass.kind == PassKind::kBW ? 'X'
                                                     : to_text(pass.kind).front();
    const auto unit = overlapped ? program_.pair(pass).forward.microbatch : pass.microbatch;
    const std::string label = fmt::format("{}{}", letter, unit);
    const auto first = static_cast<size_t>(column(start));
    for (size_t at = first; at < static_cast<size_t>(column(end)); ++at) {
      line[at] = at - first < label.size() ? label[at - first] : '-';
    }
  }

  const Program& program_;
  const Problem& problem_;
  std::vector<double> clocks_;  // by device
  std::vector<std::array<double, 2>> links_;
  std::vector<std::string> lines_;
  double columns_per_second_ = 1;
};

// True if PyTorch's CSV gives the program back, where it has a form for it.
bool survives_torch(const Schedule& schedule, const Program& program) {
  std::ostringstream csv;
  try {
    write_torch_csv(csv, program, schedule.name);
  } catch (const InfeasibleError& error) {
    std::cout << fmt::format("  no PyTorch CSV: {}\n", error.what());
    return true;
  }
  const Program back = read_torch_csv(schedule.name, csv.str());
  for (int device = 0; device < program.shape().devices; ++device) {
    for (size_t i = 0; i < program.passes(device).size(); ++i) {
      const std::string ours = program.text(device, program.passes(device)[i]);
      const bool there = i < back.passes(device).size();
      const std::string theirs = there ? back.text(device, back.passes(device)[i]) : "nothing";
      if (ours != theirs) {
        std::cout << fmt::format(
            "  FAILED: PyTorch's CSV gives back {} for pass {} of device {}, {}\n", theirs, i,
            device, ours);
        return false;
      }
    }
  }
  return true;
}

// Returns whether PyTorch's CSV keeps it.
bool show(const Schedule& schedule, const Problem& given) {
  const Problem problem = for_planning(given);
  const Program program = schedule.plan(problem);
  const Evaluation result = evaluate(program, problem);
  const Drawing drawing(program, problem);
  for (size_t device = 0; device < drawing.lines().size(); ++device) {
    std::cout << fmt::format("  {} |{}|\n", device, drawing.lines()[device]);
  }
  const auto [p, v, m, n] = problem.shape;
  std::cout << fmt::format(
      "  p = {}, v = {}, m = {}{}, F = B = W = 1 s on a device; F, B, W, X = B and W, & = F "
      "and B, W or X\n"
      "  {:.4g} s, bubble {:.2f}%; held at most, in microbatches by device:",
      p, v, m, n > 1 ? fmt::format(", n = {}", n) : "", result.makespan.value(),
      100 * result.bubble_rate());
  for (const DeviceEvaluation& device : result.devices) {
    std::cout << fmt::format(" {:.4g}", device.peak_activation.value());
  }
  std::cout << "\n";
  return survives_torch(schedule, program);
}

// gtest's filter for all that is held against these schedules (tests/claims).
std::string filter_of(const std::vector<const Schedule*>& asked) {
  std::string filter;
  const auto add = [&filter](const std::string& suite, std::string name) {
    std::ranges::replace(name, '-', '_');
    filter += fmt::format("{}Schedules/{}.*/{}", filter.empty() ? "" : ":", suite, name);
  };
  for (const Schedule* schedule : asked) {
    add("Claims*", schedule->name);
    for (const VocabularySupport& support : schedule->vocabulary) {
      add("VocabularyClaims", fmt::format("{}_{}", schedule->name, to_text(support.placement)));
    }
  }
  return filter;
}

int check(const std::string& name) {
  const auto asked = asked_for(name);
  if (asked.empty()) return 2;
  GTEST_FLAG_SET(filter, filter_of(asked));
  bool kept = RUN_ALL_TESTS() == 0;
  for (const Schedule* schedule : asked) {
    std::cout << fmt::format("\n{} ({}): {}\n  bubble {}\n  in flight on device d {}\n",
                             schedule->name, schedule->file, schedule->summary,
                             to_text(schedule->claims.bubble), to_text(schedule->claims.peak));
    try {
      const auto problem = accepted_example(*schedule);
      if (problem && !show(*schedule, *problem)) kept = false;
    } catch (const std::exception& error) {
      std::cout << fmt::format("  FAILED: {}\n", error.what());
      kept = false;
    }
  }
  std::cout << fmt::format("\n{} {}\n", name, kept ? "keeps to its record" : "FAILED: see above");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace pipesim

int main(int argc, char** argv) {
  GTEST_FLAG_SET(brief, true);
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: check_schedule NAME\n";
    return 2;
  }
  try {
    return pipesim::check(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "check_schedule: " << error.what() << '\n';
    return 1;
  }
}
