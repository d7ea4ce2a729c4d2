#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/calibration/harness/near.h"
#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

enum class Direction { kToDevice, kToHost };

constexpr int64_t kBackgroundBytes = int64_t{64} << 20;
constexpr int64_t kLargestBytes = int64_t{256} << 20;

const char* name_of(Direction direction) {
  return direction == Direction::kToDevice ? "h2d" : "d2h";
}

Direction opposite(Direction direction) {
  return direction == Direction::kToDevice ? Direction::kToHost : Direction::kToDevice;
}

// Pinned host memory and device memory of one direction, both written before any timing.
class CopyLane {
 public:
  explicit CopyLane(int64_t largest)
      : host_(static_cast<std::size_t>(largest)),
        device_(static_cast<std::size_t>(largest), Filling::kBf16, 9) {
    check_cuda(
        cudaMemcpy(host_.at(), device_.at<std::byte>(0), host_.bytes(), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  }

  [[nodiscard]] Work work(Direction direction, int64_t bytes) const {
    return [this, direction, bytes](cudaStream_t stream, int) {
      void* host = host_.at();
      void* device = device_.at<std::byte>(0);
      const bool to_device = direction == Direction::kToDevice;
      check_cuda(
          cudaMemcpyAsync(to_device ? device : host, to_device ? host : device,
                          static_cast<std::size_t>(bytes),
                          to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    };
  }

 private:
  PinnedBuffer host_;
  Arena device_;
};

struct CopyLanes {
  CopyLane down{kLargestBytes}, up{kLargestBytes};
  [[nodiscard]] Work work(Direction direction, int64_t bytes) const {
    return (direction == Direction::kToDevice ? down : up).work(direction, bytes);
  }
};

constexpr int kMeasured = 0;  // the GPU whose streams the timer has

// Work of other GPUs.
class OnDevice {
 public:
  explicit OnDevice(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(kMeasured); }
};

// Another GPU that copies one way whenever a stream of the measured one asks it to: its copy begins
// when that stream comes to it, and the stream goes on when it has ended. So the stream's events
// prove when it ran.
class Neighbour {
 public:
  Neighbour(int device, Direction direction) : device_(device), direction_(direction) {
    const OnDevice there(device);
    const NearCard near(bus_of(device));
    lane_.emplace(kBackgroundBytes);
    stream_.emplace();
    ended_.emplace();
  }

  [[nodiscard]] Direction direction() const { return direction_; }
  [[nodiscard]] Work work() const {
    return [this](cudaStream_t asks, int launch) {
      check_cuda(cudaEventRecord(asked_.get(), asks), "cudaEventRecord");
      const OnDevice there(device_);
      check_cuda(cudaStreamWaitEvent(stream_->get(), asked_.get(), 0), "cudaStreamWaitEvent");
      lane_->work(direction_, kBackgroundBytes)(stream_->get(), launch);
      ended_->record(*stream_);
      check_cuda(cudaStreamWaitEvent(asks, ended_->get(), 0), "cudaStreamWaitEvent");
    };
  }

 private:
  int device_;
  Direction direction_;
  Event asked_;
  std::optional<CopyLane> lane_;
  std::optional<Stream> stream_;
  std::optional<Event> ended_;
};

// Both ways of every GPU that shares the measured one's way to the host.
std::vector<std::unique_ptr<Neighbour>> neighbours_of(const SharedWay& way) {
  std::vector<std::unique_ptr<Neighbour>> all;
  for (const int gpu : way.gpus) {
    for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
      if (gpu != kMeasured) all.push_back(std::make_unique<Neighbour>(gpu, direction));
    }
  }
  return all;
}

Point copy_point(const char* group, Direction direction, int64_t bytes, std::string during) {
  Point point;
  point.group = group;
  point.name = name_of(direction);
  point.parameters = {{"size", std::to_string(bytes)}, {"during", std::move(during)}};
  point.bytes = static_cast<double>(bytes);
  return point;
}

// The matmuls that disturb and are disturbed: one that fills the card, one of a thin slice.
std::vector<MatmulSpec> disturbed_matmuls() {
  return {{MatmulPass::kForward, Precision::kBf16, 8192, 8192, 8192},
          {MatmulPass::kWeightGradient, Precision::kBf16, 8192, 4096, 16384},
          {MatmulPass::kForward, Precision::kBf16, 2048, 4096, 2048}};
}

// Work beside what is measured. A lambda of clang 14 cannot capture a structured binding of it.
struct Disturbance {
  const char* during;
  std::vector<Work> work;
};

void measure_disturbed(Session& session, const CopyLanes& lanes,
                       const std::function<Point(const char* during)>& point, const Work& work) {
  const Work down = lanes.work(Direction::kToDevice, kBackgroundBytes);
  const Work up = lanes.work(Direction::kToHost, kBackgroundBytes);
  const std::vector<Disturbance> disturbances{
      {"nothing", {}}, {"h2d", {down}}, {"d2h", {up}}, {"h2d_and_d2h", {down, up}}};
  for (const Disturbance& each : disturbances) {
    session.attempt(point(each.during),
                    [&](Point& p) { session.timer.measure_with(p, work, each.work); });
  }
}

}  // namespace

void measure_copies(Session& session) {
  const NearCard near(session.card.bus());
  const CopyLanes lanes;
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    for (const int64_t bytes : session.plan.copy_bytes) {
      session.attempt(copy_point("copy", direction, bytes, "nothing"), [&](Point& point) {
        session.timer.measure(point, lanes.work(direction, bytes));
      });
      const Work other = lanes.work(opposite(direction), std::max(bytes, kBackgroundBytes));
      session.attempt(copy_point("copy", direction, bytes, name_of(opposite(direction))),
                      [&](Point& point) {
                        session.timer.measure_with(point, lanes.work(direction, bytes), {other});
                      });
    }
  }
}

// The measured GPU's share of its switch while every other GPU of it copies too: one way, and both.
void measure_copies_together(Session& session) {
  std::vector<std::string> paths;
  for (int gpu = 0; gpu < session.card.facts().devices; ++gpu) {
    paths.push_back(session.path_of(bus_of(gpu)));
  }
  const SharedWay way = sharing_way_of(kMeasured, paths);
  if (way.gpus.size() < 2) {
    return session.not_measured("copy_together", "no other GPU shares the switch of the first");
  }
  const auto neighbours = neighbours_of(way);
  const NearCard near(session.card.bus());
  const CopyLanes lanes;
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    std::vector<Work> one_way;
    std::vector<Work> both_ways{lanes.work(opposite(direction), kBackgroundBytes)};
    for (const auto& neighbour : neighbours) {
      both_ways.push_back(neighbour->work());
      if (neighbour->direction() == direction) one_way.push_back(neighbour->work());
    }
    for (const int64_t bytes : session.plan.copy_bytes) {
      for (const Disturbance& others :
           {Disturbance{"nothing", one_way}, {name_of(opposite(direction)), both_ways}}) {
        Point point = copy_point("copy_together", direction, bytes, others.during);
        point.parameters.emplace_back("gpus", std::to_string(way.gpus.size()));
        point.parameters.emplace_back("way", way.assumed ? "assumed" : "switch");
        session.attempt(std::move(point), [&](Point& p) {
          session.timer.measure_with(p, lanes.work(direction, bytes), others.work);
        });
      }
    }
  }
}

void measure_interference(Session& session) {
  const NearCard near(session.card.bus());
  const CopyLanes lanes;
  session.burn_in();
  for (const MatmulSpec& spec : disturbed_matmuls()) {
    measure_disturbed(
        session, lanes, [&](const char* during) { return disturbed_point_of(spec, {}, during); },
        matmul_work(session, spec));
  }
  const Arena& operands = session.operands(Precision::kBf16);
  const Arena& results = session.scratch();
  const auto device_copy = [](const char* during) {
    Point point;
    point.group = "interference";
    point.name = "device_copy";
    point.parameters = {{"size", std::to_string(kLargestBytes)}, {"during", during}};
    point.bytes = 2 * static_cast<double>(kLargestBytes);
    return point;
  };
  measure_disturbed(session, lanes, device_copy, [&](cudaStream_t stream, int) {
    check_cuda(
        cudaMemcpyAsync(results.at<std::byte>(0), operands.at<std::byte>(0),
                        static_cast<std::size_t>(kLargestBytes), cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
  });
  const MatmulSpec load = disturbed_matmuls().front();
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    const Work copy = lanes.work(direction, kBackgroundBytes);
    session.attempt(copy_point("interference", direction, kBackgroundBytes, "matmul"),
                    [&](Point& point) {
                      session.timer.measure_with(point, copy, {matmul_work(session, load)});
                    });
    const Work other = lanes.work(opposite(direction), kBackgroundBytes);
    session.attempt(copy_point("interference", direction, kBackgroundBytes,
                               std::string("matmul_and_") + name_of(opposite(direction))),
                    [&](Point& point) {
                      session.timer.measure_with(point, copy, {matmul_work(session, load), other});
                    });
  }
}

}  // namespace pipesim::calibration
