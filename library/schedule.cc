// Schedules of a program that uses the library, in the registry beside the others.
#include "sim/planning/schedule.h"

#include <fmt/format.h>
#include <memory>
#include <pipesim/schedule.h>
#include <utility>

#include "library/errors.h"
#include "library/within.h"
#include "sim/core/error.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/planning/list_schedule.h"

namespace pipesim {
namespace {

api::Problem public_problem(const Problem& problem) {
  api::Problem made{.devices = problem.shape.devices,
                    .chunks = problem.shape.chunks,
                    .microbatches = problem.shape.microbatches,
                    .stages = {},
                    .activation_limit_bytes = {}};
  for (const StageCost& cost : problem.stages) {
    made.stages.push_back({.forward_seconds = cost.forward.value(),
                           .backward_input_seconds = cost.backward_input.value(),
                           .backward_weight_seconds = cost.backward_weight.value(),
                           .transfer_seconds = cost.transfer.value(),
                           .activation_bytes = cost.activation.value(),
                           .weight_stash_bytes = cost.weight_stash.value()});
  }
  if (problem.activation_limit) made.activation_limit_bytes = problem.activation_limit->value();
  return made;
}

PassKind kind_of(api::PassKind kind) { return static_cast<PassKind>(kind); }
static_assert(static_cast<PassKind>(api::PassKind::kF) == PassKind::kF);
static_assert(static_cast<PassKind>(api::PassKind::kBW) == PassKind::kBW);

api::NextPass public_pass(const NextPass& pass) {
  return {static_cast<api::PassKind>(pass.kind), pass.chunk};
}

class PublicTurn : public api::Turn {
 public:
  PublicTurn(const pipesim::Turn& turn, const api::Problem& problem)
      : turn_(turn), problem_(problem) {}

  const api::Problem& problem() const override { return problem_; }
  int device() const override { return turn_.device(); }
  double now_seconds() const override { return turn_.now().value(); }
  int ran(api::PassKind kind, int chunk) const override {
    return turn_.ran(kind_of(kind), checked(chunk));
  }
  int forwards_left(int chunk) const override { return turn_.forwards_left(checked(chunk)); }
  int in_flight() const override { return turn_.in_flight(); }
  bool ready(api::PassKind kind, int chunk) const override {
    return turn_.ready(kind_of(kind), checked(chunk));
  }
  double arrival_seconds(api::PassKind kind, int chunk) const override {
    return turn_.arrival(kind_of(kind), checked(chunk)).value();
  }
  std::optional<api::NextPass> first_ready(
      std::initializer_list<api::PassKind> kinds) const override {
    for (const api::PassKind kind : kinds) {
      if (const auto found = turn_.first_ready({kind_of(kind)})) return public_pass(*found);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] int checked(int chunk) const {
    return within("chunk", chunk, Range<int>{0, problem_.chunks - 1});
  }

  const pipesim::Turn& turn_;
  const api::Problem& problem_;
};

Program played(const api::Schedule& schedule, const Problem& problem) {
  const api::Problem asked = public_problem(problem);
  return list_schedule(problem, [&](const Turn& turn) -> std::optional<NextPass> {
    const auto next = schedule.next_pass(PublicTurn(turn, asked));
    if (!next) return std::nullopt;
    return NextPass{kind_of(next->kind), next->chunk};
  });
}

std::string rows_of(const std::vector<std::vector<std::string>>& devices) {
  std::string rows;
  for (const auto& passes : devices) {
    for (const std::string& pass : passes) rows += pass + ", ";
    rows += passes.empty() ? ",\n" : "\n";
  }
  return rows;
}

Program listed(const api::Schedule& schedule, const Problem& problem) {
  const std::string name = fmt::format("<{}>", schedule.name);
  Program program = read_pass_rows(name, rows_of(schedule.passes(public_problem(problem))));
  if (program.shape() == problem.shape && program.placement() == problem.placement) return program;
  const Shape& is = program.shape();
  const Shape& asked = problem.shape;
  throw InputError(
      {name, 0, 0, ""},
      fmt::format("{} devices, {} chunks, {} microbatches: expected {}, {} and {}, with chunk c of "
                  "device d as stage c x {} + d",
                  is.devices, is.chunks, is.microbatches, asked.devices, asked.chunks,
                  asked.microbatches, asked.devices));
}

// Without a plan the registry says what the record lacks.
std::function<Program(const Problem&)> plan_of(api::Schedule schedule) {
  if (!schedule.next_pass && !schedule.passes) return nullptr;
  auto shared = std::make_shared<const api::Schedule>(std::move(schedule));
  if (shared->next_pass) return [shared](const Problem& each) { return played(*shared, each); };
  return [shared](const Problem& each) { return listed(*shared, each); };
}

}  // namespace

api::RegisteredSchedule::RegisteredSchedule(Schedule schedule, const char* file) {
  const pipesim::RegisteredSchedule registered({.name = schedule.name,
                                                .summary = schedule.summary,
                                                .source = schedule.source,
                                                .origin = Origin::kOurs,
                                                .default_chunks = schedule.chunks,
                                                .min_chunks = schedule.chunks,
                                                .max_chunks = schedule.chunks,
                                                .memory_limit = schedule.memory_limit,
                                                .plan = plan_of(std::move(schedule)),
                                                .claims = {}},
                                               file);
}

}  // namespace pipesim
