#include "validate/calibration/harness/ranks.h"
#include "validate/calibration/harness/session.h"

#ifdef PIPESIM_NCCL

namespace pipesim::calibration {
namespace {

constexpr int64_t kBackgroundBytes = int64_t{64} << 20;

void measure_beside(Session& session, int count, const char* during,
                    const std::vector<Work>& backgrounds) {
  const MatmulSpec spec{MatmulPass::kForward, Precision::kBf16, 8192, 8192, 8192};
  session.attempt(disturbed_point_of(spec, {{"ranks", std::to_string(count)}}, during),
                  [&](Point& point) {
                    session.timer.measure_with(point, matmul_work(session, spec), backgrounds);
                  });
}

void measure_group(Session& session, int count) {
  const Ranks ranks(count, session.plan.message_bytes.back());
  measure_beside(session, count, "nothing", {});
  for (const NamedOperation& each : kOperations) {
    for (const int64_t bytes : session.plan.message_bytes) {
      Point point;
      point.group = "nccl";
      point.name = each.name;
      point.parameters = {{"ranks", std::to_string(count)}, {"size", std::to_string(bytes)}};
      point.bytes = static_cast<double>(bytes);
      session.attempt(std::move(point), [&](Point& p) {
        session.timer.measure(p, ranks.work(each.operation, bytes));
        ranks.synchronize();
      });
    }
    measure_beside(session, count, each.name, {ranks.work(each.operation, kBackgroundBytes)});
    ranks.synchronize();
  }
}

}  // namespace

void measure_collectives(Session& session) {
  const int devices = session.card.facts().devices;
  if (devices < 2) {
    session.not_measured("nccl", "one GPU: there is nobody to send to");
    return;
  }
  for (int count = 2; count <= devices; count *= 2) {
    try {
      measure_group(session, count);
    } catch (const NcclError& error) {
      session.not_measured("nccl/ranks=" + std::to_string(count), error.what());
    }
  }
}

}  // namespace pipesim::calibration

#else

namespace pipesim::calibration {

void measure_collectives(Session& session) { session.not_measured("nccl", "built without NCCL"); }

}  // namespace pipesim::calibration

#endif
