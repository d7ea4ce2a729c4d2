// A whole calibration against the virtual device: every stage, every pointer, every number.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sched.h>
#include <set>

#include "tests/calibration/harness/virtual_device.h"
#include "validate/calibration/compose.h"
#include "validate/calibration/fitted.h"
#include "validate/calibration/harness/near.h"
#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

namespace vd = virtual_device;

// Four GPUs: the first and the third behind one switch.
std::string path_of(const std::string& bus) {
  const std::string port = bus == "ffff:00:00.0" || bus == "ffff:02:00.0" ? "01.0" : "02.0";
  return "/sys/devices/pci0000:00/0000:00:" + port + "/0000:01:00.0/" + bus;
}

Measurements run(Mode mode) {
  const Card card(0);
  Session session(card, make_plan(mode), [](const std::string&) {});
  session.path_of = path_of;
  run_stages(session);
  return std::move(session.measured);
}

std::string number(const Fitted& fitted, const std::string& curve, const std::string& name) {
  const auto found = std::ranges::find(fitted.curves, curve, &FittedCurve::name);
  if (found == fitted.curves.end()) return "none of " + curve;
  for (const auto& [key, value] : found->numbers) {
    if (key == name) return value;
  }
  return "no " + name;
}

Gpu catalogue_gpu() {
  Gpu gpu;
  gpu.peak = {FlopsPerSecond(989e12), FlopsPerSecond(1979e12)};
  gpu.memory_bandwidth = BytesPerSecond(3.35e12);
  gpu.multiprocessors = 132;
  return gpu;
}

const Measurements& full() {
  static const Measurements measured = run(Mode::kFull);
  return measured;
}

TEST(Run, ReleasesWhatItTakesAndFitsIntoACardOfFortyGigabytes) {
  (void)full();
  EXPECT_EQ(vd::state().allocations, 0u);
  EXPECT_LT(vd::state().peak_bytes, std::size_t{40} << 30);
}

TEST(Run, TimesEveryMatmulAsLongAsItTook) {
  std::size_t matmuls = 0;
  for (const Point& point : full().points) {
    if (point.group != "matmul") continue;
    ++matmuls;
    const double rate = vd::kMatmulFlopsPerUs * (point.parameter("dtype") == "bf16" ? 1 : 2);
    EXPECT_NEAR(point.time_us.median, vd::kLaunchUs + point.flops / rate,
                1e-4 * point.time_us.median)
        << point.key();
  }
  EXPECT_EQ(matmuls, make_plan(Mode::kFull).matmuls.size());
}

TEST(Run, TimesEveryKernelByTheBytesOfItsFormula) {
  std::set<std::string> names;
  for (const Point& point : full().points) {
    if (point.group != "kernel") continue;
    names.insert(point.name);
    // The formula also counts what a kernel keeps per row.
    EXPECT_NEAR(point.time_us.median, vd::kLaunchUs + point.bytes / vd::kMemoryBytesPerUs,
                0.01 * point.time_us.median)
        << point.key();
  }
  EXPECT_EQ(names.size(), all_kernels().size());
}

TEST(Run, ALayerTakesTheSumOfItsParts) {
  const LayerSlice slice{layer_named("gpt-6.2b"), 1, 3, 1024};
  for (const char pass : {'F', 'B', 'W'}) {
    for (const char* what : {"layer", "vocabulary"}) {
      const Point* measured = full().find(point_of(slice, what, pass).key());
      const Point* composed =
          full().find(point_of(slice, std::string(what) + "_composed", pass).key());
      ASSERT_NE(measured, nullptr) << what << " " << pass;
      ASSERT_NE(composed, nullptr) << what << " " << pass;
      EXPECT_NEAR(measured->time_us.median, composed->time_us.median,
                  1e-4 * composed->time_us.median)
          << what << " " << pass;
      EXPECT_DOUBLE_EQ(measured->flops, composed->flops) << what << " " << pass;
    }
  }
}

TEST(Run, AGraphsKernelIsReportedAndNotTheGraph) {
  const Point* point = full().find("launch/graph_kernel_to_kernel");
  ASSERT_NE(point, nullptr);
  EXPECT_NEAR(point->time_us.median, vd::kEmptyKernelUs, 1e-3);
}

TEST(Run, MeasuresCopiesAloneAndUnderLoadInBothDirections) {
  for (const char* key :
       {"copy/h2d/size=268435456/during=nothing", "copy/h2d/size=268435456/during=d2h",
        "copy/d2h/size=268435456/during=h2d", "interference/h2d/size=67108864/during=matmul",
        "interference/d2h/size=67108864/during=matmul_and_h2d"}) {
    const Point* point = full().find(key);
    ASSERT_NE(point, nullptr) << key;
    EXPECT_NEAR(point->bytes / point->time_us.median * 1e-3, vd::kCopyBytesPerUs * 1e-3, 0.2)
        << key;
  }
}

TEST(Run, ItsFitsFindTheDevice) {
  const Fitted fitted = fit_measurements(run(Mode::kQuick), catalogue_gpu(), {}, 0);
  EXPECT_NEAR(std::stod(number(fitted, "matmul", "launch")), vd::kLaunchUs, 0.3);
  EXPECT_NEAR(std::stod(number(fitted, "streaming", "efficiency")),
              vd::kMemoryBytesPerUs * 1e6 / 3.35e12, 0.02);
  EXPECT_NEAR(std::stod(number(fitted, "host", "alone")), vd::kCopyBytesPerUs * 1e-3, 0.1);
  EXPECT_NEAR(std::stod(number(fitted, "host", "duplex")), vd::kCopyBytesPerUs * 1e-3, 0.1);
}

TEST(Run, CopiesWithAllGpusOfTheSwitch) {
  vd::state().devices = 4;
  const Measurements measured = run(Mode::kQuick);
  vd::state().devices = 1;
  for (const char* during : {"nothing", "d2h"}) {
    const std::string key =
        std::string("copy_together/h2d/size=268435456/during=") + during + "/gpus=2/way=switch";
    const Point* point = measured.find(key);
    ASSERT_NE(point, nullptr) << key;
    EXPECT_NEAR(point->bytes / point->time_us.median, vd::kCopyBytesPerUs, 100);
  }
  EXPECT_EQ(vd::state().allocations, 0U);
}

TEST(Run, CopiesAloneWhereNoOtherGpuSharesTheSwitch) {
  EXPECT_TRUE(std::ranges::any_of(full().not_measured, [](const NotMeasured& entry) {
    return entry.what == "copy_together" &&
           entry.reason == "no other GPU shares the switch of the first";
  }));
}

TEST(Run, NamesWhatItDidNotMeasureAndWhy) {
  const auto reason = [](const std::string& what) {
    for (const NotMeasured& entry : full().not_measured) {
      if (entry.what.starts_with(what)) return entry.reason;
    }
    return std::string("measured");
  };
  EXPECT_EQ(reason("attention/fused"), "built without cuDNN");
#ifdef PIPESIM_NCCL
  EXPECT_EQ(reason("nccl"), "one GPU: there is nobody to send to");
#else
  EXPECT_EQ(reason("nccl"), "built without NCCL");
#endif
  EXPECT_EQ(reason("layer/F/layer=llama3-8b"),
            "unfused attention takes equal numbers of heads and kv heads");
}

#ifdef PIPESIM_NCCL
TEST(Run, MeasuresMessagesBetweenSeveralCards) {
  vd::state().devices = 4;
  const Measurements measured = run(Mode::kQuick);
  vd::state().devices = 1;
  const Fitted fitted = fit_measurements(measured, catalogue_gpu(), {}, 0);
  EXPECT_NEAR(std::stod(number(fitted, "send_recv", "latency")), vd::kMessageUs, 0.5);
  EXPECT_NEAR(std::stod(number(fitted, "send_recv", "bandwidth")), vd::kLinkBytesPerUs * 1e-3, 1);
  // Nothing disturbs anything here.
  for (const char* curve : {"messages", "copies", "collectives"}) {
    EXPECT_EQ(number(fitted, std::string("compute_beside_") + curve, "share"), "0") << curve;
  }
  for (const char* name : {"send_recv", "exchange", "all_reduce", "all_gather", "reduce_scatter"}) {
    for (const Point& point : measured.points) {
      if (point.group != "nccl" || point.name != name) continue;
      EXPECT_GE(point.time_us.median, vd::kMessageUs) << name;
    }
    EXPECT_TRUE(std::ranges::any_of(measured.points, [&](const Point& point) {
      return point.group == "nccl" && point.name == name;
    })) << name;
  }
}
#endif

TEST(Run, HandsOverWhatItHasAfterEveryStageAndCollectivesComeLast) {
  const Card card(0);
  Session session(card, make_plan(Mode::kQuick), [](const std::string&) {});
  std::vector<std::string> watched;
  std::vector<std::size_t> points;
  session.watch = [&](const char* stage) {
    watched.emplace_back(stage);
    return std::shared_ptr<void>();
  };
  session.stage_ended = [&](const Session& each) { points.push_back(each.measured.points.size()); };
  run_stages(session);
  ASSERT_EQ(watched.size(), points.size());
  EXPECT_EQ(watched.back(), "collectives");
  EXPECT_TRUE(std::ranges::is_sorted(points));
  EXPECT_GT(points.front(), 0U);
}

TEST(Run, AStageThatALibraryRefusesLosesNoOther) {
  const Card card(0);
  Session session(card, make_plan(Mode::kQuick), [](const std::string&) {});
  session.watch = [](const char* stage) -> std::shared_ptr<void> {
    (void)stage;
    return nullptr;
  };
  EXPECT_FALSE(session.attempt({}, [](Point&) { throw CublasError("no algorithm"); }));
  EXPECT_FALSE(session.attempt({}, [](Point&) { throw AttentionError("no plan"); }));
  ASSERT_EQ(session.measured.not_measured.size(), 2U);
  EXPECT_EQ(session.measured.not_measured[1].reason, "no plan");
}

TEST(Run, StoresMatmulsFromRestBesideThoseUnderLoad) {
  const Point* burst = nullptr;
  for (const Point& point : full().points) {
    if (point.group == "matmul_burst" && burst == nullptr) burst = &point;
  }
  ASSERT_NE(burst, nullptr);
  EXPECT_NE(full().find("matmul" + burst->key().substr(burst->group.size())), nullptr);
}

// Here nothing is faster after a pause.
TEST(Run, MeasuresALayersPassesBetweenPauses) {
  double together = 0;
  std::size_t points = 0;
  const LayerSlice slice = make_plan(Mode::kFull).layers.front();
  for (const char pass : {'F', 'B', 'W'}) {
    together += full().find(point_of(slice, "layer", pass).key())->time_us.median;
  }
  for (const Point& point : full().points) {
    if (point.group != "pauses") continue;
    ++points;
    EXPECT_NEAR(point.time_us.median, together, 1e-3 * together) << point.key();
  }
  EXPECT_EQ(points, 10U);
}

TEST(Processors, AreReadFromTheKernelsLists) {
  EXPECT_EQ(processors_of("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(processors_of("5"), std::vector<int>{5});
  for (const char* wrong : {"", "a", "3-1", "1;2", "0-99999999"}) {
    EXPECT_TRUE(processors_of(wrong).empty()) << wrong;
  }
}

cpu_set_t allowed() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

// Any device on the bus has processors next to it.
TEST(NearCard, RunsOnTheProcessorsNextToItUntilItsEnd) {
  const std::filesystem::path devices = "/sys/bus/pci/devices";
  if (!std::filesystem::exists(devices) || std::filesystem::is_empty(devices)) {
    GTEST_SKIP() << "the machine shows no PCI devices";
  }
  const auto device = std::filesystem::directory_iterator(devices)->path();
  std::string line;
  std::getline(std::ifstream(device / "local_cpulist"), line);
  const std::vector<int> next = processors_of(line);
  const cpu_set_t before = allowed();
  {
    const NearCard near(device.filename().string());
    const cpu_set_t within = allowed();
    for (int processor = 0; processor < CPU_SETSIZE && !next.empty(); ++processor) {
      if (CPU_ISSET(processor, &within) == 0 || CPU_EQUAL(&within, &before) != 0) continue;
      EXPECT_NE(std::ranges::find(next, processor), next.end()) << processor;
    }
  }
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Run, ASmallCardLosesPointsAndSaysSo) {
  vd::state().memory_bytes = std::size_t{6} << 30;
  const Measurements measured = run(Mode::kQuick);
  vd::state().memory_bytes = std::size_t{80} << 30;
  EXPECT_FALSE(measured.points.empty());
  const auto refused = std::ranges::count_if(measured.not_measured, [](const auto& entry) {
    return entry.reason.starts_with("cudaMalloc of") || entry.reason.starts_with("a region of");
  });
  EXPECT_GT(refused, 0);
  // Points that fit are measured all the same, the sweep at the end included.
  EXPECT_NE(measured.find("matmul/fprop/dtype=bf16/tokens=2048/in=4096/out=12288"), nullptr);
  EXPECT_EQ(vd::state().allocations, 0u);
}

}  // namespace
}  // namespace pipesim::calibration
