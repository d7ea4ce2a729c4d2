// Building blocks: Table 1 from executed schedules, Tables 8 and 9 from the blocks they repeat.
#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string_view>

#include "sim/core/letters.h"
#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/planning/building_block.h"
#include "sim/planning/schedule.h"
#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/paper_keys.h"

namespace pipesim::controllable_memory {
namespace {

// A number, or none (1); then d and M, as far as they stand there.
double factor(std::string_view& rest, double d) {
  double value = 0;
  bool any = false;
  for (; !rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) != 0;
       rest.remove_prefix(1)) {
    value = 10 * value + (rest.front() - '0');
    any = true;
  }
  if (!any) value = 1;
  for (; !rest.empty() && (rest.front() == 'd' || rest.front() == 'M'); rest.remove_prefix(1)) {
    if (rest.front() == 'd') value *= d;
  }
  return value;
}

// Sums of terms like 12d, M/2d and 6, with M = 1. "12d (exact 12d-2)" gives the exact part.
double formula(const YamlValue& value, double d) {
  constexpr std::string_view kExact = "(exact ";
  const std::string text = value.text();
  std::string_view rest = text;
  if (const size_t at = rest.find(kExact); at != std::string_view::npos) {
    rest = rest.substr(at + kExact.size());
    rest = rest.substr(0, rest.find(')'));
  }
  double sum = 0;
  double sign = 1;
  for (size_t before = rest.size() + 1; !rest.empty() && rest.size() < before;) {
    before = rest.size();
    double term = factor(rest, d);
    if (rest.starts_with('/')) {
      rest.remove_prefix(1);
      term /= factor(rest, d);
    }
    sum += sign * term;
    if (!rest.starts_with('+') && !rest.starts_with('-')) break;
    sign = rest.front() == '-' ? -1 : 1;
    rest.remove_prefix(1);
  }
  if (text.empty() || !rest.empty()) value.fail("expected terms like 6, 12d, M/2d");
  return sum;
}

// The steady state that a schedule repeats.
struct Steady {
  double period = 0;    // slots between two microbatches
  double lifespan = 0;  // slots from the start of F to the end of W, on the stage with the longest
  double microbatch = 0;  // what one keeps on a stage, over what 1F1B holds
  double peak = 0;        // of a device, likewise
  double idle = 0;        // slots of the device that is busy from first to last for the longest
};

constexpr int kPerDevice = 6;  // microbatches: several of all that are in flight

// F, B and W of a V-shape's chunk take a slot and keep 1; a device has as much work in any
// schedule.
Problem equal_problem(const Schedule& schedule, int devices) {
  const int chunks = schedule.default_chunks;
  Problem problem;
  problem.shape = {devices, chunks, kPerDevice * devices, 1};
  problem.placement = schedule.place(devices, chunks);
  const double share = 2.0 / chunks;
  StageCost cost;
  cost.forward = cost.backward_input = cost.backward_weight = Seconds(share);
  cost.activation = cost.weight_stash = Bytes(share);
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  return problem;
}

Steady steady(const Schedule& schedule, int devices) {
  const Problem problem = equal_problem(schedule, devices);
  const auto program = std::make_shared<const Program>(schedule.plan(problem));
  const TaskGraph graph = build_task_graph(program, problem);
  const Timeline timeline = make_replay_engine()->run(graph, Cluster{}, {});
  const int middle = problem.shape.microbatches / 2;
  const int later = middle + devices;
  double first = 0;
  double next = 0;
  std::vector<double> begin(devices, 1e300);
  std::vector<double> finish(devices, 0);
  std::vector<double> forward(problem.placement.virtual_stages());
  std::vector<double> end = forward;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kCompute) continue;
    const Pass pass = graph.pass(task);
    const int device = static_cast<int>(graph.task_class(task).device);
    const int vs = problem.placement.virtual_stage(device, pass.chunk);
    begin[device] = std::min(begin[device], timeline.start[task]);
    finish[device] = std::max(finish[device], timeline.end[task]);
    const bool is_forward = pass.kind == PassKind::kF;
    const int microbatch = graph.microbatch(task);
    if (vs == 0 && is_forward && microbatch == middle) first = timeline.start[task];
    if (vs == 0 && is_forward && microbatch == later) next = timeline.start[task];
    if (microbatch != middle) continue;
    if (is_forward) forward[vs] = timeline.start[task];
    end[vs] = std::max(end[vs], timeline.end[task]);
  }
  Steady found;
  found.period = (next - first) / (later - middle);
  for (size_t vs = 0; vs < end.size(); ++vs) {
    found.lifespan = std::max(found.lifespan, end[vs] - forward[vs]);
  }
  constexpr double kWork = 6;  // slots of a microbatch
  for (int device = 0; device < devices; ++device) {
    const double idle = finish[device] - begin[device] - kWork * problem.shape.microbatches;
    found.idle = std::max(found.idle, idle);
  }
  const double most = 2.0 * devices;  // what 1F1B holds
  found.microbatch = problem.stages.front().activation.value() / most;
  found.peak = evaluate(*program, problem).peak_activation().value() / most;
  return found;
}

const Schedule& schedule_of(const YamlValue& block) {
  static const std::vector<std::string> kNames{"1F1B", "V-Min", "V-Half", "V-ZB"};
  return *find_schedule(small_letters(block.choice(kNames)));  // ours are the same in small letters
}

void compare_block(std::vector<Cell>& cells, const YamlValue& value, int devices) {
  YamlMap row(value);
  const YamlValue block = row.require("block", "a block's name");
  const Steady found = steady(schedule_of(block), devices);
  struct Column {
    const char* key;
    double simulated;
    bool exact;  // others leave out what vanishes for many devices
  };
  for (const Column& column :
       {Column{"T", found.period, true}, Column{"m", found.microbatch, true},
        Column{"l_max", found.lifespan, false}, Column{"peak", found.peak, false}}) {
    const auto given = row.find(column.key);
    if (!given) continue;
    Cell cell;
    cell.table = column.exact ? "Table 1" : "Table 1, for many devices";
    cell.cell = fmt::format("{} d={} {}", block.text(), devices, column.key);
    cell.published = formula(*given, devices);
    cell.simulated = column.simulated;
    cell.relative = true;
    if (column.exact) {
      cell.must_agree = true;
      cell.worst = 1e-9;  // rounding
    }
    cells.push_back(cell);
  }
  finish_row(row);
}

// Bubble in slots, for many devices, and peak in microbatches, exact.
void compare_slide(std::vector<Cell>& cells, const YamlValue& value, int devices) {
  YamlMap row(value);
  const YamlValue block = row.require("block", "a block's name");
  const Steady found = steady(schedule_of(block), devices);
  const YamlValue bubble = row.require("bubble", "slots, as 4d");
  const auto plus = row.require("peak_plus", "a whole number").integer(0, 1 << 10);
  const auto over = row.require("peak_over", "a whole number").integer(1, 1 << 10);
  finish_row(row);
  const double work = 6.0 * kPerDevice * devices;
  Cell cell;
  cell.table = "Slides, bubble";
  cell.cell = fmt::format("{} d={} n={}", block.text(), devices, kPerDevice * devices);
  cell.published = formula(bubble, devices) / work;
  cell.simulated = found.idle / work;
  cell.digits = 3;
  cells.push_back(cell);
  cell.table = "Slides, peak microbatches";
  const long in_flight = (devices + plus) / over;  // rounded down, as the slides have it
  cell.published = static_cast<double>(in_flight);
  cell.simulated = found.peak * devices;
  cell.digits = 0;
  cell.must_agree = true;
  cells.push_back(cell);
}

// A pass of a block, by its name in Tables 8 and 9.
struct Offset {
  const char* key;
  int value;
};
using Offsets = std::array<Offset, 7>;
using SlotOf = std::function<int(VeeKind kind, int device)>;

Offsets offsets_of(const SlotOf& slot, int devices) {
  const int last = devices - 1;
  return {{{"dF0", slot(kF0, 1) - slot(kF0, 0)},
           {"dF1", slot(kF1, 0) - slot(kF1, 1)},
           {"dB0", slot(kB1, 1) - slot(kB1, 0)},
           {"dB1", slot(kB0, 0) - slot(kB0, 1)},
           {"d_Fd0_Fd1", slot(kF1, last) - slot(kF0, last)},
           {"d_F01_B01", slot(kB1, 0) - slot(kF1, 0)},
           {"d_Bd0_Bd1", slot(kB0, last) - slot(kB1, last)}}};
}

// "d mod 3 > 0", "d mod 2 == 1"
bool holds(const YamlValue& condition, int devices) {
  const std::string text = condition.text();
  const auto number = [&text](size_t at) { return at < text.size() ? text[at] - '0' : 0; };
  constexpr std::string_view kStart = "d mod ";
  const size_t equal = text.find("== ");
  const size_t more = text.find("> ");
  const int divisor = text.starts_with(kStart) ? number(kStart.size()) : 0;
  if (divisor < 1 || divisor > 9 || (equal == std::string::npos && more == std::string::npos)) {
    condition.fail("expected a condition like 'd mod 3 == 0' or 'd mod 3 > 0'");
  }
  const int rest = devices % divisor;
  return equal != std::string::npos ? rest == number(equal + 3) : rest > number(more + 2);
}

std::vector<int> numbers(YamlMap& row) {
  std::vector<int> all;
  for (const Offset& each : offsets_of([](VeeKind, int) { return 0; }, 2)) {
    all.push_back(static_cast<int>(row.require(each.key, "slots").integer(0, 1 << 16)));
  }
  return all;
}

bool is_block_of_search(const std::vector<int>& published, int devices) {
  BlockBuilder builder(devices, 2 * devices);
  return std::ranges::any_of(building_blocks(devices, devices), [&](const Block& block) {
    if (block.step != block.last_step || !builder.place(block)) return false;
    const Offsets ours =
        offsets_of([&](VeeKind kind, int d) { return builder.slot(kind, d); }, devices);
    return std::ranges::equal(ours, published, {}, &Offset::value);
  });
}

void compare_row(std::vector<Cell>& cells, const YamlValue& value, const std::string& table,
                 const std::string& schedule) {
  constexpr int kLeast = 4;
  constexpr int kMost = 16;
  YamlMap row(value);
  const YamlValue condition = row.require("cond", "as 'd mod 3 == 0'");
  const std::vector<int> published = numbers(row);
  finish_row(row);
  std::vector<int> devices;
  for (int d = kLeast; d <= kMost; ++d) {
    if (holds(condition, d)) devices.push_back(d);
  }
  if (devices.empty()) condition.fail("no number of devices meets it");
  const int d = devices.front();
  const auto block = schedule == "v-min" ? v_min_slots : v_half_slots;
  const Offsets ours =
      offsets_of([&](VeeKind kind, int device) { return block(d, device)[kind]; }, d);
  for (size_t i = 0; i < ours.size(); ++i) {
    Cell cell;
    cell.table = table;
    cell.cell = fmt::format("{} d={} {}", schedule, d, ours[i].key);
    cell.published = published[i];
    cell.simulated = ours[i].value;
    cell.digits = 0;
    // The authors' generator, which ours follows, turns a slot earlier on the way up and a slot
    // later on the way down: the block is as long, and its memory the same.
    const std::string_view key = ours[i].key;
    const bool turn = schedule == "v-half" && (key == "d_Fd0_Fd1" || key == "d_Bd0_Bd1");
    cell.must_agree = !turn;
    cell.relative = turn;
    if (turn) cell.table += ", where the block turns";
    if (turn && published[i] != ours[i].value) cell.note = "missed: as in the authors' generator";
    cells.push_back(cell);
  }
  Cell cell;
  cell.table = table + " among the blocks of v-search";
  cell.cell = fmt::format("{}, {}, numbers of devices from {} to {}", schedule, condition.text(),
                          kLeast, kMost);
  cell.published = static_cast<double>(devices.size());
  cell.simulated = static_cast<double>(std::ranges::count_if(
      devices, [&](int count) { return is_block_of_search(published, count); }));
  cell.digits = 0;
  cell.must_agree = true;
  cells.push_back(cell);
}

}  // namespace

void compare_blocks(std::vector<Cell>& cells, const YamlValue& rows) {
  for (const YamlValue& row : rows.list()) {
    for (const int devices : {12, 48}) compare_block(cells, row, devices);
  }
}

void compare_slides(std::vector<Cell>& cells, const YamlValue& rows) {
  for (const int devices : {8, 16, 32}) {
    for (const YamlValue& row : rows.list()) compare_slide(cells, row, devices);
  }
}

void compare_offsets(std::vector<Cell>& cells, const YamlValue& rows, const std::string& table,
                     const std::string& schedule) {
  for (const YamlValue& row : rows.list()) compare_row(cells, row, table, schedule);
}

}  // namespace pipesim::controllable_memory
