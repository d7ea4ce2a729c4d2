// Group-interleaved 1F1B (PipeOffload, Wan et al. 2025, arXiv 2503.01328): microbatches
// go through the chunks in groups of g <= p, which keeps fewer of them in flight than the groups of
// p that interleaved 1F1B needs; B and W are apart.
//
// One row of passes on a device is an F, a B and a W. The F of a group fill g rows per chunk, and
// those of its next chunk start K g rows later, K being the least number of groups that covers the
// way of a forward, or of a gradient, through the pipeline (`rows_of_a_round`). Where K and v have
// a common divisor, chunks would meet in one row: every v / gcd(v, K) chunks the F move on by one
// group. The sequence repeats itself every g v rows, and its backwards follow it, last chunk first,
// from the first F of the last chunk on: one row later for each device upstream.
//
// Every shape can be executed. Give each pass one slot, row r of device d starting at slot
// 3 r + 3 d / 2: then every F comes after the one upstream and every B after the one downstream,
// and the at least 3 p / 2 slots of a round are enough for the way from the last device to the
// first, or back, as well.
//
// `gis` has groups of p, `gis-h` of half as many: less memory, more bubble. `po-h` and `po-f` have
// groups of one, as the authors' generator does where it offloads, and activations wait on the host
// while they lie idle: of the first half of the chunks, which wait longest, or of all. The half is
// rounded up: the paper's Figure 15 has 5 chunks, and 3 of them fit its memory better than 2.
// Copies are planned by the authors' rules (published_offload.h), for groups of one in slots of one
// pass; with `offload: {plan: best}` by ours (with_offload.h).
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/execution/published_offload.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/schedule.h"

namespace pipesim::gis {
namespace {

// A row holds the F of this microbatch and chunk, and later its B and W.
struct Row {
  int microbatch = -1;  // none
  int chunk = 0;
};

int ceiling(int a, int b) { return (a + b - 1) / b; }

// Rows that the slowest device needs for a microbatch to come through a chunk of every device, in
// either direction; at least p / 2, at most p.
int rows_of_a_round(const Problem& problem) {
  const Shape& shape = problem.shape;
  Seconds row, way;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    Seconds forward, backward;
    for (int device = 0; device < shape.devices; ++device) {
      const StageCost& cost = problem.stage(problem.placement.virtual_stage(device, chunk));
      row = std::max(row, cost.forward + cost.backward_input + cost.backward_weight);
      forward += cost.forward;
      backward += cost.backward_input;
    }
    way = std::max({way, forward, backward});
  }
  int rows = ceiling(shape.devices, 2);
  while (rows < shape.devices && rows * row < way) ++rows;
  return rows;
}

class Groups {
 public:
  Groups(const Problem& problem, int group)
      : shape_(problem.shape),
        group_(group),
        apart_(ceiling(rows_of_a_round(problem), group)),
        before_move_(shape_.chunks / std::gcd(shape_.chunks, apart_)) {}

  // Groups of chunk 0 that start before the group that is at `chunk` does.
  [[nodiscard]] int groups_ahead(int chunk) const { return apart_ * chunk + chunk / before_move_; }
  [[nodiscard]] int apart() const { return apart_; }

  [[nodiscard]] std::vector<Row> rows() const {
    const int groups = ceiling(shape_.microbatches, group_);
    const int last = (groups - 1) * shape_.chunks + groups_ahead(shape_.chunks - 1) + 1;
    std::vector<Row> rows(last * group_);
    for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
      for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
        const int at = microbatch / group_ * shape_.chunks + groups_ahead(chunk);
        rows[at * group_ + microbatch % group_] = {microbatch, chunk};
      }
    }
    return rows;
  }

  // Slots by which a device is later than its rows say, so that forwards of a chunk reach the first
  // device in time for the next chunk.
  [[nodiscard]] int shift(int device) const {
    int spare = shape_.devices - 1;
    for (int chunk = 1; chunk < shape_.chunks; ++chunk) {
      const int groups = groups_ahead(chunk) - groups_ahead(chunk - 1);
      spare = std::min(spare, 3 * groups * group_ - shape_.devices);
    }
    return std::min(device, spare);
  }

  // Rows between the F of a microbatch's first chunk and the B of its last.
  [[nodiscard]] int delay(int device) const {
    return groups_ahead(shape_.chunks - 1) * group_ + shape_.devices - 1 - device;
  }

 private:
  const Shape& shape_;
  int group_;
  int apart_;        // K: from one chunk of a group to its next, in groups
  int before_move_;  // chunks
};

// How the four differ.
struct Variant {
  enum class Groups { kWhole, kHalf, kOne } groups = Groups::kWhole;
  enum class Offload { kNone, kHalf, kAll } offload = Offload::kNone;
};
using GroupsOf = Variant::Groups;
using Offloads = Variant::Offload;

// Groups of one under recompute, as in the authors' generator: chunks that do not recompute then
// keep as few microbatches as can be.
template <Variant kVariant>
int group_size(const Problem& problem) {
  if (problem.recompute_chunks > 0) return 1;
  const int devices = problem.shape.devices;
  const long group = kVariant.groups == GroupsOf::kWhole  ? devices
                     : kVariant.groups == GroupsOf::kHalf ? ceiling(devices, 2)
                                                          : 1;
  return static_cast<int>(
      std::min(problem.option<long>("group_size").value_or(group), static_cast<long>(devices)));
}

// `starts`, where they are asked for, get the slot of every pass.
Program grouped(const Problem& problem, int group,
                std::vector<std::vector<double>>* starts = nullptr) {
  const Shape& shape = problem.shape;
  const Groups groups(problem, group);
  const std::vector<Row> rows = groups.rows();
  PassLists lists(shape.devices);
  if (starts != nullptr) starts->resize(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    list.reserve(3 * shape.microbatches * shape.chunks);
    const size_t delay = groups.delay(device);
    const int later = device + groups.shift(device);
    const auto add = [&](PassKind kind, const Row& row, int chunk, size_t slot) {
      list.push_back(make_pass(kind, row.microbatch, chunk));
      if (starts != nullptr) (*starts)[device].push_back(static_cast<double>(slot) + later);
    };
    for (size_t at = 0; at < rows.size() + delay; ++at) {
      if (at < rows.size() && rows[at].microbatch >= 0) {
        add(PassKind::kF, rows[at], rows[at].chunk, 3 * at);
      }
      if (at < delay || rows[at - delay].microbatch < 0) continue;
      const Row& back = rows[at - delay];
      add(PassKind::kB, back, shape.chunks - 1 - back.chunk, 3 * at + 1);
      add(PassKind::kW, back, shape.chunks - 1 - back.chunk, 3 * at + 2);
    }
  }
  Program program(shape, problem.placement, std::move(lists));
  if (problem.recompute_chunks == 0) return program;
  return with_recompute(program, problem.recompute_chunks);
}

// With copies by the authors' rules. Groups of one stand in slots of a third of F, B and W, as in
// their generator before it has measured any pass; larger ones start each pass as early as it can.
Program published(const Problem& problem, int group, int chunks) {
  if (group > 1) {
    const Program program = grouped(problem, group);
    return with_published_offload(program, problem, chunks, pass_times(program, problem));
  }
  PassTimes times;
  const Program program = grouped(problem, group, &times.start);
  const double slot =
      typical_seconds(problem,
                      [](const StageCost& cost) {
                        return cost.forward + cost.backward_input + cost.backward_weight;
                      }) /
      3;
  times.end = times.start;
  for (int device = 0; device < problem.shape.devices; ++device) {
    for (double& start : times.start[device]) start *= slot;
    for (double& end : times.end[device]) end = (end + 1) * slot;
  }
  return with_published_offload(program, problem, chunks, std::move(times));
}

bool knows_copies(const Problem& problem) {
  return typical_seconds(problem,
                         [](const StageCost& cost) { return cost.copy_out + cost.copy_in; }) > 0;
}

// `offload: {plan: best}` of the scenario.
bool wants_best(const Problem& problem) {
  return problem.option<std::string>("offload_plan") == "best";
}

// The authors' runtime has neither.
std::optional<Refusal> refuse_published(const Problem& problem) {
  const Shape& shape = problem.shape;
  if (wants_best(problem) || !knows_copies(problem)) return std::nullopt;
  const std::string instead = "; offload: {plan: best} does";
  if (problem.recompute_chunks > 0) {
    return Refusal{"PipeOffload's rules do not offload chunks that recompute in full" + instead,
                   shape};
  }
  if (shape.devices % 2 == 0) return std::nullopt;
  Shape nearest = shape;
  ++nearest.devices;
  return Refusal{
      "PipeOffload's rules have devices offload in pairs and take no odd number" + instead,
      nearest};
}

template <Variant kVariant>
struct Grouped {
  static int group(const Problem& problem) { return group_size<kVariant>(problem); }

  static Program plan(const Problem& problem) {
    if (kVariant.offload == Offloads::kNone) return grouped(problem, group(problem));
    const int chunks = problem.shape.chunks;
    const long usual = kVariant.offload == Offloads::kAll ? chunks : ceiling(chunks, 2);
    const auto offloaded = static_cast<int>(problem.option<long>("offload_chunks").value_or(usual));
    if (!wants_best(problem) && knows_copies(problem)) {
      return published(problem, group(problem), offloaded);
    }
    return with_offload(grouped(problem, group(problem)), problem, offloaded);
  }

  // Full groups that follow each other without an empty row.
  static bool dense(const Problem& problem) {
    return problem.shape.microbatches % group(problem) == 0 &&
           Groups(problem, group(problem)).apart() == 1;
  }

  static bool exact(const Problem& problem) {
    const StageCost& cost = problem.stage(0);
    const bool filled = group(problem) == problem.shape.devices ||
                        cost.backward_weight <= cost.forward + cost.backward_input;
    return filled && problem.recompute_chunks == 0 && dense(problem) && uniform(problem) &&
           free_transfers(problem);
  }

  // A chunk's turn comes again after g rows, a pass of the first microbatch after p devices: a
  // group of less than p waits for it at every chunk, going up with F and coming down with B and W.
  // Published for g = p and g = p/2; the form between was found by experiment. Copies take none of
  // it.
  static Seconds bubble(const Problem& problem) {
    const Shape& shape = problem.shape;
    const StageCost& cost = problem.stage(0);
    const int size = group(problem);
    const Seconds up = (shape.devices - size) * cost.forward;
    const Seconds down =
        shape.devices * cost.backward_input - size * (cost.backward_input + cost.backward_weight);
    return (shape.devices - 1) * (cost.forward + cost.backward_input) +
           (shape.chunks - 1) * (up + std::max(Seconds(0), down));
  }

  static int in_flight(const Problem& problem, int device) {
    const Shape& shape = problem.shape;
    return std::min((shape.chunks - 1) * group(problem) + shape.devices - device,
                    shape.microbatches * shape.chunks);
  }

  static Schedule record(std::string name, std::string summary) {
    Schedule record;
    record.name = std::move(name);
    record.summary = std::move(summary);
    record.source = "PipeOffload, arXiv 2503.01328";
    record.default_chunks = 2;
    record.min_chunks = 2;
    record.max_chunks = 1024;
    record.options.push_back(
        {.name = "group_size",
         .help = "microbatches that go through a chunk before the next chunk's turn; more than p "
                 "count as p, and under recompute it is 1",
         .minimum = 1,
         .maximum = 1 << 20,
         .default_text = kVariant.groups == GroupsOf::kWhole  ? "the number of devices"
                         : kVariant.groups == GroupsOf::kHalf ? "half the devices, rounded up"
                                                              : "1"});
    if (kVariant.offload != Offloads::kNone) {
      record.options.push_back({.name = "offload_chunks",
                                .help = "chunks of every device that offload, from the first, "
                                        "whose activations wait longest",
                                .minimum = 0,
                                .maximum = 1024,
                                .counts_chunks = true,
                                .default_text = kVariant.offload == Offloads::kAll
                                                    ? "all"
                                                    : "half of them, rounded up"});
      record.refuse = refuse_published;
      record.without_offload = "gis";
      record.without_offload_options = {{"group_size", 1L}};
    }
    record.runs_on = Runtime::kZeroBubbleFork;
    record.order =
        kVariant.offload == Offloads::kAll
            ? "gis in groups of one, with the activations of all chunks offloaded"
        : kVariant.offload == Offloads::kHalf
            ? "gis in groups of one, offloaded of the first ceil(v/2) chunks, which live longest"
        : kVariant.groups == GroupsOf::kHalf
            ? "gis in groups of p/2, rounded up"
            : "interleaved with B and W apart, in groups of g <= p microbatches (default p)";
    record.plan = plan;
    const std::string_view gap =
        kVariant.groups == GroupsOf::kHalf
            ? "no closed form is known for a last group that is not full, as where p is odd"
        : kVariant.groups == GroupsOf::kOne
            ? "no closed form is known for groups of less than the rows of a round"
            : "";
    record.claims = {
        .bubble = {.formula = "(p-1) (F+B) + (v-1) ((p-g) F + max(0, p B - g (B+W))), F, B, W of "
                              "a chunk",
                   .domain = "m a multiple of g, g at least the rows of a round (p/2 when all "
                             "passes are alike); g = p or W <= F+B; equal stages, free transfers",
                   .gap = gap,
                   .holds = exact,
                   .bubble = bubble},
        .peak = {.formula = "min((v-1)g + p-d, m v) chunks, those on the host included",
                 .domain = "m a multiple of g, g at least the rows of a round (p/2 when all passes "
                           "are alike)",
                 .gap = gap,
                 .holds = dense,
                 .in_flight = in_flight}};
    return record;
  }
};

const RegisteredSchedule kGis{Grouped<Variant{}>::record(
    "gis", "interleaved 1F1B with B and W apart, in groups of any size up to p: less memory")};
const RegisteredSchedule kGisH{Grouped<Variant{.groups = GroupsOf::kHalf}>::record(
    "gis-h", "gis in groups of half the devices: about half its memory, more bubble")};
const RegisteredSchedule kPoH{
    Grouped<Variant{.groups = GroupsOf::kOne, .offload = Offloads::kHalf}>::record(
        "po-h",
        "gis in groups of one, the first half of the chunks offloaded, which wait longest")};
const RegisteredSchedule kPoF{
    Grouped<Variant{.groups = GroupsOf::kOne, .offload = Offloads::kAll}>::record(
        "po-f", "gis in groups of one, with the activations of all chunks offloaded")};

}  // namespace
}  // namespace pipesim::gis
