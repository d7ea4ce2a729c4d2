#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

// Where the operands of one launch lie: both inputs in one region, the result in another.
struct Regions {
  std::size_t first, second, result;
};

Regions regions_of(const MatmulSpec& spec) {
  const int64_t operand = spec.precision == Precision::kBf16 ? 2 : 1;
  const int64_t x = spec.tokens * spec.in;
  const int64_t y = spec.tokens * spec.out;
  const int64_t weight = spec.in * spec.out;
  switch (spec.pass) {
    case MatmulPass::kForward:
      return {aligned(operand * x), aligned(operand * weight), aligned(2 * y)};
    case MatmulPass::kInputGradient:
      return {aligned(operand * y), aligned(operand * weight), aligned(2 * x)};
    case MatmulPass::kWeightGradient:
      return {aligned(operand * x), aligned(operand * y), aligned(4 * weight)};
  }
  throw std::invalid_argument("unknown matmul pass");
}

// The first shapes from rest: for people, beside what they take under a load that lasts.
constexpr std::size_t kBursts = 6;
constexpr double kRestOfBurnIn = 0.05;  // the pause before each, of the time that a burn-in takes

void measure_bursts(Session& session) {
  if (session.plan.burn_in_s <= 0) return;
  for (std::size_t i = 0; i < std::min(kBursts, session.plan.matmuls.size()); ++i) {
    const MatmulSpec& spec = session.plan.matmuls[i];
    Point point = point_of(spec);
    point.group = "matmul_burst";
    std::this_thread::sleep_for(
        std::chrono::duration<double>(kRestOfBurnIn * session.plan.burn_in_s));
    session.attempt(std::move(point),
                    [&](Point& p) { session.timer.measure(p, matmul_work(session, spec)); });
  }
}

}  // namespace

Work matmul_work(Session& session, const MatmulSpec& spec) {
  const Regions regions = regions_of(spec);
  const Arena& operands = session.operands(spec.precision);
  const Arena& results = session.scratch();
  const auto l2 = static_cast<std::size_t>(session.card.facts().l2_bytes);
  const Rotation in(operands.bytes(), regions.first + regions.second, l2);
  const Rotation out(results.bytes(), regions.result, l2);
  auto matmul = std::make_shared<LinearMatmul>(session.cublas, spec);
  return [=, &operands, &results](cudaStream_t stream, int launch) {
    const void* first = operands.at<std::byte>(in.offset(launch));
    const void* second = operands.at<std::byte>(in.offset(launch) + regions.first);
    LinearOperands bound{.result = results.at<std::byte>(out.offset(launch))};
    bound.x = first;
    bound.dy = spec.pass == MatmulPass::kInputGradient ? first : second;
    bound.weight = second;
    matmul->enqueue(bound, stream);
  };
}

void measure_matmuls(Session& session) {
  measure_bursts(session);
  session.burn_in();
  bool fp8_refused = false;
  for (const MatmulSpec& spec : session.plan.matmuls) {
    if (spec.precision == Precision::kFp8 && !session.card.has_fp8()) {
      if (!fp8_refused) session.not_measured("matmul/fp8_e4m3", "the card has no fp8 matrix units");
      fp8_refused = true;
      continue;
    }
    session.attempt(point_of(spec), [&](Point& point) {
      session.timer.measure(point, matmul_work(session, spec));
    });
  }
}

}  // namespace pipesim::calibration
