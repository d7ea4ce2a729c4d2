#include <memory>

#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

// The tensors of one attention, random; they are larger than the L2 cache in the plan's shapes or
// as small as they are in training.
class AttentionData {
 public:
  explicit AttentionData(const AttentionShape& shape)
      : q_(shape.batch * shape.sequence * shape.heads * shape.head_dim),
        kv_(shape.batch * shape.sequence * shape.kv_heads * shape.head_dim),
        memory_(static_cast<std::size_t>(4 * q_ + 4 * kv_) * sizeof(Bfloat16), Filling::kBf16, 5) {}

  [[nodiscard]] AttentionTensors tensors() const {
    auto* p = memory_.at<Bfloat16>(0);
    return {.q = p,
            .k = p + 4 * q_,
            .v = p + 4 * q_ + kv_,
            .o = p + q_,
            .d_o = p + 2 * q_,
            .d_q = p + 3 * q_,
            .d_k = p + 4 * q_ + 2 * kv_,
            .d_v = p + 4 * q_ + 3 * kv_};
  }

 private:
  int64_t q_, kv_;
  Arena memory_;
};

// With a method that is not the session's, the points say so and are no rows of its curve.
template <class Make>
bool measure_shape(Session& session, const AttentionShape& shape, const char* method, Make make) {
  const auto point_for = [&](bool backward) {
    Point point = point_of(shape, backward);
    if (*method != '\0') point.parameters.emplace_back("method", method);
    return point;
  };
  std::unique_ptr<AttentionKernels> attention;
  std::unique_ptr<AttentionData> data;
  const bool forward = session.attempt(point_for(false), [&](Point& point) {
    attention = make();
    data = std::make_unique<AttentionData>(shape);
    session.settle();  // plans are compiled by the host
    session.timer.measure(
        point, [&](cudaStream_t stream, int) { attention->forward(data->tensors(), stream); });
  });
  if (!forward) return false;
  session.attempt(point_for(true), [&](Point& point) {
    session.timer.measure(
        point, [&](cudaStream_t stream, int) { attention->backward(data->tensors(), stream); });
  });
  return true;
}

}  // namespace

void measure_attention(Session& session) {
  if (!session.attention.why_not_fused().empty()) {
    session.not_measured("attention/fused", session.attention.why_not_fused());
  }
  session.burn_in();
  const bool fused = session.attention.why_not_fused().empty();
  for (const AttentionShape& shape : session.plan.attention) {
    const bool measured = measure_shape(session, shape, "", [&] {
      return fused ? make_fused_attention(session.attention, shape)
                   : make_unfused_attention(session.cublas, shape);
    });
    if (measured || !fused) continue;
    (void)measure_shape(session, shape, "unfused",
                        [&] { return make_unfused_attention(session.cublas, shape); });
  }
}

}  // namespace pipesim::calibration
