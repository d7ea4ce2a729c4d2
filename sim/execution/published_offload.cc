#include "sim/execution/published_offload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/grid.h"
#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

constexpr double kSlotSlack = 1e-9;  // of a slot, for times that are equal but for rounding
constexpr double kShortest = 6;      // slots that an activation must live longer than

// A copy in its slot; even slots of a device carry copies out, odd ones copies in.
struct Slot {
  long number = 0;  // of the device: the odd device of a pair is one slot behind
  Copy copy;
  bool back = false;
  double start = 0;
  double end = 0;
  double made = 0;  // end of the F, of a copy out
};

class PublishedOffload {
 public:
  PublishedOffload(const Program& program, const Problem& problem, int chunks, PassTimes times)
      : program_(program),
        problem_(problem),
        place_(program.placement()),
        chunks_(chunks),
        times_(std::move(times)),
        slot_(typical_seconds(
            problem, [](const StageCost& cost) { return 0.5 * (cost.copy_out + cost.copy_in); })),
        slots_(place_.devices()) {}

  Program run() {
    plan_.devices_per_link =
        std::min(std::max(2, problem_.devices_per_host_link), place_.devices());
    plan_.links.resize((place_.devices() + plan_.devices_per_link - 1) / plan_.devices_per_link);
    plan_.gates.resize(place_.devices());
    if (slot_ > 0 && chunks_ > 0) {
      delay_warm_up();
      for (int device = 0; device < place_.devices(); device += 2) plan_pair(device);
      for (int device = 0; device < place_.devices(); ++device) place_back(device);
      fill_links();
      for (int device = 0; device < place_.devices(); ++device) add_gates(device);
    }
    return program_.with_copies(std::move(plan_));
  }

 private:
  [[nodiscard]] double start(int device, size_t position) const {
    return times_.start[device][position];
  }
  [[nodiscard]] double end(int device, size_t position) const {
    return times_.end[device][position];
  }
  [[nodiscard]] double seconds(int device, size_t position) const {
    return end(device, position) - start(device, position);
  }

  // Forwards before the first B of a device, the last first, up to the first F of the last chunk.
  void delay_warm_up() {
    Grid<std::uint32_t> forward(place_.virtual_stages(), program_.shape().units());
    for (int device = 0; device < place_.devices(); ++device) {
      const auto passes = program_.passes(device);
      for (std::uint32_t i = 0; i < passes.size(); ++i) {
        if (passes[i].kind != PassKind::kF) continue;
        forward(place_.virtual_stage(device, passes[i].chunk), passes[i].microbatch) = i;
      }
    }
    for (int device = place_.devices(); device-- > 0;) {
      const auto passes = program_.passes(device);
      const auto backward =
          std::ranges::find_if(passes, [](const Pass& pass) { return is_backward(pass.kind); });
      auto i = static_cast<size_t>(backward - passes.begin());
      double latest = start(device, i) - seconds(device, i);
      while (i-- > 0) {
        const Pass& pass = passes[i];
        if (pass.microbatch == 0 && pass.chunk == place_.chunks(device) - 1) break;
        const int vs = place_.virtual_stage(device, pass.chunk);
        const double lasts = seconds(device, i);
        double starts = latest - lasts;
        if (const int down = place_.downstream(vs); down >= 0) {
          const double needed = start(place_.device(down), forward(down, pass.microbatch));
          const double message = problem_.stage(vs, pass.microbatch).transfer.value();
          starts = std::min(starts, needed - message - lasts);
        }
        if (starts > start(device, i)) {
          times_.start[device][i] = starts;
          times_.end[device][i] = starts + lasts;
        }
        latest = start(device, i);
      }
    }
  }

  // The number of slots, a multiple of two, after which a device's next one starts no earlier.
  [[nodiscard]] long slots_until(double from, double seconds) const {
    return 2 * std::lround(std::ceil((seconds - from) / (2 * slot_) - kSlotSlack));
  }
  // Likewise, no later.
  [[nodiscard]] long slots_before(double from, double seconds) const {
    return 2 * std::lround(std::floor((seconds - from) / (2 * slot_) + kSlotSlack));
  }

  void plan_pair(int even) {
    const double first = end(even, 0);
    for (const int device : {even, even + 1}) fill_slots(device, first + (device - even) * slot_);
    drop_slots_of_warm_up(even);
  }

  void fill_slots(int device, double first) {
    const auto passes = program_.passes(device);
    Grid<std::uint32_t> made(chunks_, program_.shape().units());
    std::vector<std::array<std::uint32_t, 2>> leave;  // positions of F and of B, by B
    for (std::uint32_t i = 0; i < passes.size(); ++i) {
      const Pass& pass = passes[i];
      if (pass.chunk >= chunks_) continue;
      if (pass.kind == PassKind::kF) made(pass.chunk, pass.microbatch) = i;
      if (pass.kind != PassKind::kB && pass.kind != PassKind::kBW) continue;
      const std::uint32_t f = made(pass.chunk, pass.microbatch);
      const double lives = start(device, i) - seconds(device, i) - end(device, f);
      if (lives > (kShortest + kSlotSlack) * slot_) leave.push_back({f, i});
    }
    const long last = fill_out(device, first, leave);
    fill_back(device, first, leave, last);
    std::ranges::stable_sort(slots_[device], {}, &Slot::number);
  }

  // Returns the first free slot.
  long fill_out(int device, double first, std::vector<std::array<std::uint32_t, 2>> leave) {
    std::ranges::sort(leave);
    long number = 0;
    for (const auto& [f, b] : leave) {
      const double ended = end(device, f);
      number = std::max(number, slots_until(first, ended));
      const double starts = first + static_cast<double>(number) * slot_;
      slots_[device].push_back({.number = number,
                                .copy = copy_of(device, f),
                                .start = starts,
                                .end = starts + slot_,
                                .made = ended});
      out_slot(device, f) = number;
      number += 2;
    }
    return number;
  }

  void fill_back(int device, double first, const std::vector<std::array<std::uint32_t, 2>>& leave,
                 long number) {
    number = std::max(number, slots_until(first, times_.end[device].back()));
    for (size_t k = leave.size(); k-- > 0;) {
      const auto& [f, b] = leave[k];
      const double latest = start(device, b) - problem_.prefetch * seconds(device, b);
      number = std::min(number, slots_before(first, latest));
      if (number - 1 <= out_slot(device, f) + 1) refuse(device, f);
      const double ends = first + static_cast<double>(number) * slot_;
      slots_[device].push_back({.number = number - 1,
                                .copy = copy_of(device, f),
                                .back = true,
                                .start = ends - slot_,
                                .end = ends});
      number -= 2;
    }
  }

  [[noreturn]] void refuse(int device, std::uint32_t f) const {
    const Pass& pass = program_.passes(device)[f];
    const double passes = typical_seconds(problem_, [](const StageCost& cost) {
      return cost.forward + cost.backward_input + cost.backward_weight;
    });
    throw InfeasibleError(fmt::format(
        "PipeOffload's rules find no slot in which microbatch {} of chunk {} comes back to device "
        "{}: copies out and in take {:.2f} of the passes; expected fewer offload_chunks than {}, a "
        "faster link, or offload: {{plan: best}}, which keeps on the device what cannot return",
        pass.microbatch, pass.chunk, device, 2 * slot_ / passes, chunks_));
  }

  // Copies out before the first copy in of the pair follow each other.
  void drop_slots_of_warm_up(int even) {
    struct Out {
      long number;
      int device;
      Slot* slot;
    };
    std::vector<Out> outs;
    long first_back = std::numeric_limits<long>::max();
    for (const int device : {even, even + 1}) {
      for (Slot& slot : slots_[device]) {
        const long number = slot.number + device - even;
        if (slot.back) first_back = std::min(first_back, number);
        if (!slot.back) outs.push_back({number, device, &slot});
      }
    }
    std::ranges::sort(outs, {}, &Out::number);
    double clock = 0;
    for (const auto& [number, device, slot] : outs) {
      if (number >= first_back) break;
      slot->copy.alone = true;
      slot->start = std::max(clock, slot->made);
      slot->end = clock = slot->start + problem_.copy_alone_factor * slot_;
    }
  }

  // A copy in follows the pass before the one during which its slot starts.
  void place_back(int device) {
    auto& slots = slots_[device];
    size_t next = 0;
    for (size_t i = 0; i < times_.end[device].size(); ++i) {
      for (; next < slots.size() && before(slots[next].start, end(device, i)); ++next) {
        if (!slots[next].back) continue;
        slots[next].copy.after = i == 0 ? Copy::kAnyTime : static_cast<std::uint32_t>(i - 1);
      }
    }
  }
  [[nodiscard]] bool before(double a, double b) const { return a < b - kSlotSlack * slot_; }

  void fill_links() {
    std::vector<std::tuple<double, int, const Slot*>> all;
    for (int device = 0; device < place_.devices(); ++device) {
      for (const Slot& slot : slots_[device]) all.emplace_back(slot.start, device, &slot);
    }
    std::ranges::sort(all);
    out_number_ = Grid<std::uint32_t>(place_.virtual_stages(), program_.shape().units());
    for (const auto& [starts, device, slot] : all) {
      const Copy& copy = slot->copy;
      if (!moves(copy)) continue;
      LinkCopies& link = plan_.links[plan_.link_of(copy.device)];
      if (slot->back) {
        link.in.push_back(copy);
        continue;
      }
      out_number_(stage(copy), copy.unit) = static_cast<std::uint32_t>(link.out.size());
      link.out.push_back(copy);
    }
  }
  [[nodiscard]] int stage(const Copy& copy) const {
    return place_.virtual_stage(static_cast<int>(copy.device), copy.chunk);
  }
  // A stage that keeps nothing has its slots all the same.
  [[nodiscard]] bool moves(const Copy& copy) const {
    const StageCost& cost = problem_.stage(stage(copy), copy.unit);
    return cost.copy_out + cost.copy_in > Seconds(0);
  }

  // The first pass that starts once a copy out has ended waits for it; of several, for the last.
  void add_gates(int device) {
    auto& gates = plan_.gates[device];
    size_t next = 0;
    for (const Slot& slot : slots_[device]) {
      const double ended = slot.back ? slot.start : slot.end;
      while (next < times_.start[device].size() && before(start(device, next), ended)) ++next;
      if (next == times_.start[device].size()) return;
      if (slot.back || !moves(slot.copy)) continue;
      const Gate gate{static_cast<std::uint32_t>(next),
                      out_number_(stage(slot.copy), slot.copy.unit)};
      if (!gates.empty() && gates.back().position == gate.position) {
        gates.back() = gate;
      } else {
        gates.push_back(gate);
      }
    }
  }

  [[nodiscard]] Copy copy_of(int device, std::uint32_t f) const {
    const Pass& pass = program_.passes(device)[f];
    return {
        .device = static_cast<std::uint32_t>(device), .unit = pass.microbatch, .chunk = pass.chunk};
  }
  long& out_slot(int device, std::uint32_t f) {
    if (out_slot_.empty()) out_slot_.resize(place_.devices());
    auto& of_device = out_slot_[device];
    if (of_device.empty()) of_device.resize(program_.passes(device).size());
    return of_device[f];
  }

  const Program& program_;
  const Problem& problem_;
  const Placement& place_;
  int chunks_;
  PassTimes times_;
  double slot_;
  CopyPlan plan_;
  std::vector<std::vector<Slot>> slots_;     // by device
  std::vector<std::vector<long>> out_slot_;  // by device and position of F
  Grid<std::uint32_t> out_number_;           // of its link, by virtual stage and unit
};

}  // namespace

std::vector<Bytes> peaks_by_order(const Program& program, const Problem& problem) {
  const CopyPlan& plan = *program.copies();
  std::vector<std::vector<Bytes>> before(plan.gates.size());  // by device and position
  for (int device = 0; device < program.placement().devices(); ++device) {
    before[device].resize(program.passes(device).size());
    const LinkCopies& link = plan.links[plan.link_of(device)];
    std::uint32_t next = 0;
    for (const Gate& gate : plan.gates[device]) {
      for (; next <= gate.out; ++next) {
        const Copy& copy = link.out[next];
        if (std::cmp_not_equal(copy.device, device)) continue;
        before[device][gate.position] -= copied_bytes(problem, program, copy);
      }
    }
  }
  for (const LinkCopies& link : plan.links) {
    for (const Copy& copy : link.in) {  // after kAnyTime comes 0
      before[copy.device][copy.after + 1] += copied_bytes(problem, program, copy);
    }
  }
  std::vector<Bytes> peaks;
  for (int device = 0; device < program.placement().devices(); ++device) {
    Bytes kept;
    Bytes peak;
    const auto passes = program.passes(device);
    for (size_t i = 0; i < passes.size(); ++i) {
      const PassBytes bytes = pass_bytes(problem, program, device, passes[i]);
      kept += before[device][i] + bytes.acquired;
      peak = std::max(peak, kept);
      kept -= bytes.released;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

double typical_seconds(const Problem& problem, Seconds (*seconds)(const StageCost&)) {
  std::vector<double> all;
  for (const StageCost& cost : problem.stages) all.push_back(seconds(cost).value());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  return *middle;
}

Program with_published_offload(const Program& program, const Problem& problem, int chunks,
                               PassTimes times) {
  if (program.placement().devices() % 2 != 0) {
    throw LogicError("PipeOffload's rules pair devices, and were asked for an odd number");
  }
  return PublishedOffload(program, problem, chunks, std::move(times)).run();
}

}  // namespace pipesim
