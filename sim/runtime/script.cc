#include "sim/runtime/script.h"

#include <algorithm>
#include <numeric>

#include "sim/core/error.h"
#include "sim/interop/torch/rules.h"
#include "sim/pipeline/copy_cells.h"
#include "sim/pipeline/dependencies.h"

namespace pipesim::runtime {
namespace {

// Notes of a unit, by device: for every collective, and for the meeting before every kind of
// vocabulary pass.
constexpr NoteId kParts = static_cast<NoteId>(kBarriers) + 4;

}  // namespace

NoteIds::NoteIds(const Program& program)
    : stages_(static_cast<NoteId>(program.placement().virtual_stages())),
      units_(static_cast<NoteId>(program.shape().units())),
      devices_(static_cast<NoteId>(program.placement().devices())),
      messages_(2 * stages_ * units_),
      parts_(2 * messages_) {
  const bool sharded = is_sharded(program.vocabulary());
  NoteId next = parts_ + (sharded ? kParts * units_ * devices_ : 0);
  if (const CopyPlan* plan = program.copies()) {
    for (const LinkCopies& link : plan->links) {
      links_.push_back(next);
      outs_.push_back(static_cast<NoteId>(link.out.size()));
      next += static_cast<NoteId>(link.out.size() + link.in.size());
    }
  }
  starts_ = next;
}

NoteId NoteIds::part(Barrier barrier, std::uint32_t unit, int device) const {
  return parts_ + (static_cast<NoteId>(barrier) * units_ + unit) * devices_ +
         static_cast<NoteId>(device);
}

NoteId NoteIds::meeting(PassKind kind, std::uint32_t unit, int device) const {
  const auto row = static_cast<NoteId>(kBarriers) + static_cast<NoteId>(kind) -
                   static_cast<NoteId>(PassKind::kS);
  return parts_ + (row * units_ + unit) * devices_ + static_cast<NoteId>(device);
}

NoteId NoteIds::copied(std::size_t link, bool out, std::size_t number) const {
  return links_[link] + (out ? 0 : outs_[link]) + static_cast<NoteId>(number);
}

namespace {

Wait for_note(NoteId note, double seconds = 0) {
  return {Wait::For::kNote, note, Lane::kCompute, seconds};
}
Wait for_item(Lane lane, std::size_t number) {
  return {Wait::For::kItem, static_cast<std::uint32_t>(number), lane, 0};
}

class Scribe {
 public:
  Scribe(const Program& program, const Durations& durations, Semantics semantics, int device)
      : program_(program),
        place_(program.placement()),
        ids_(program),
        durations_(durations),
        semantics_(semantics),
        device_(device),
        everybody_(place_.devices()) {
    if (program.copies() != nullptr) stays_ = stays_of(program);
    std::iota(everybody_.begin(), everybody_.end(), 0);
    script_.item_of_position.resize(program.passes(device).size());
  }

  // With the calls that there are, or with the messages of a stream of their own.
  DeviceScript write(const CommBatches* batches, std::span<const MessageId> messages) {
    const auto passes = program_.passes(device_);
    const auto calls =
        batches == nullptr ? std::span<const CommBatch>() : batches->batches(device_);
    std::size_t called = 0;
    for (std::uint32_t at = 0; at <= passes.size(); ++at) {
      for (; called < calls.size() && calls[called].before == at; ++called) {
        Item call{.kind = Item::Kind::kCall};
        for (const MessageId id : batches->messages(device_, calls[called])) add_end(call, id);
        lane(Lane::kCompute).push_back(std::move(call));
      }
      if (at < passes.size()) add_pass(at, passes[at]);
    }
    add_messages(messages);
    if (program_.copies() != nullptr) add_copies(*program_.copies());
    return std::move(script_);
  }

 private:
  std::vector<Item>& lane(Lane of) { return script_.lanes[static_cast<std::size_t>(of)]; }

  void add_messages(std::span<const MessageId> order) {
    for (const MessageId id : order) {
      Item one{.kind = Item::Kind::kCall};
      add_end(one, id);
      if (one.call.front().sends) {
        one.waits.push_back(for_item(Lane::kCompute, made_.at(id)));
      }
      lane(Lane::kMessages).push_back(std::move(one));
    }
  }

  void add_end(Item& call, MessageId id) {
    const auto stages = static_cast<MessageId>(place_.virtual_stages());
    const auto units = static_cast<MessageId>(program_.shape().units());
    const bool forward = id < stages * units;
    const int from = static_cast<int>(id / units % stages);
    const int to = target_of(place_, {forward ? PassKind::kF : PassKind::kB, from}).vs;
    const bool sends = place_.device(from) == device_;
    const int peer = place_.device(sends ? to : from);
    call.call.push_back({id, sends, peer, durations_.messages[id]});
    if (!sends) call.first.push_back({ids_.ready(id), {peer}});
  }

  void add_pass(std::uint32_t at, const Pass& pass) {
    const bool together =
        is_vocabulary(pass.kind) && program_.vocabulary() == VocabularyPlacement::kInterlaced;
    Item item{.kind = Item::Kind::kPass, .position = at};
    item.seconds = durations_.passes[device_][at];
    program_.visit_parts(pass, [&](const Pass& part) { add_part(item, part); });
    if (program_.copies() != nullptr) add_copy_waits(item, at);
    if (together) add_meeting(pass, item);
    script_.item_of_position[at] = static_cast<std::uint32_t>(lane(Lane::kCompute).size());
    lane(Lane::kCompute).push_back(std::move(item));
    if (together) add_hold(pass);
  }

  [[nodiscard]] StagePass stage_pass(const Pass& pass) const {
    return {pass.kind, place_.virtual_stage(device_, pass.chunk)};
  }

  // Adds the notes of other devices that one pass waits for, and the devices that it tells.
  void add_part(Item& item, const Pass& pass) {
    const StagePass at = stage_pass(pass);
    const std::uint32_t unit = pass.microbatch;
    if (const auto barrier = collective_before(place_, program_.vocabulary(), at)) {
      add_barrier(item, *barrier, unit);
    }
    if (const auto barrier = collective_after(place_, program_.vocabulary(), at)) {
      item.posts.push_back({ids_.part(*barrier, unit, device_), everybody_});
    }
    const StagePass source = source_of(place_, at);
    // In calls of the compute stream a message is there before the pass is.
    if (source.exists() && place_.device(source.vs) != device_ && semantics_ != Semantics::kCalls) {
      const MessageId id = ids_.message(source.kind, source.vs, unit);
      item.waits.push_back(for_note(ids_.data(id), durations_.messages[id]));
    }
    const StagePass target = target_of(place_, at);
    if (target.exists() && place_.device(target.vs) != device_) {
      const MessageId id = ids_.message(at.kind, at.vs, unit);
      made_.resize(std::max<std::size_t>(made_.size(), id + 1));
      made_[id] = lane(Lane::kCompute).size();
      if (semantics_ == Semantics::kAsynchronous) {
        item.posts.push_back({ids_.data(id), {place_.device(target.vs)}});
      }
    }
  }

  void add_barrier(Item& item, Barrier barrier, std::uint32_t unit) {
    const double seconds = durations_.barriers[unit][barrier];
    if (!joins_all_devices(barrier)) {
      const int of = place_.device(gathered_by(place_, barrier).vs);
      item.waits.push_back(for_note(ids_.part(barrier, unit, of), seconds));
      return;
    }
    for (const int of : everybody_) {
      item.waits.push_back(for_note(ids_.part(barrier, unit, of), seconds));
    }
  }

  // An interlaced vocabulary: all devices come to the pass, run it, and go on after its collective.
  void add_meeting(const Pass& pass, Item& item) {
    Item meet{.kind = Item::Kind::kMeet};
    meet.first.push_back({ids_.meeting(pass.kind, pass.microbatch, device_), everybody_});
    for (const int of : everybody_) {
      meet.waits.push_back(for_note(ids_.meeting(pass.kind, pass.microbatch, of)));
    }
    meet.waits.insert(meet.waits.end(), item.waits.begin(), item.waits.end());
    lane(Lane::kCompute).push_back(std::move(meet));
  }

  void add_hold(const Pass& pass) {
    const auto after = collective_after(place_, program_.vocabulary(), stage_pass(pass));
    if (!after) return;
    Item hold{.kind = Item::Kind::kHold};
    add_barrier(hold, *after, pass.microbatch);
    lane(Lane::kCompute).push_back(std::move(hold));
  }

  void add_copy_waits(Item& item, std::uint32_t at) {
    const CopyPlan& plan = *program_.copies();
    const std::size_t link = plan.link_of(static_cast<std::uint32_t>(device_));
    for (const Gate& gate : plan.gates[device_]) {
      if (gate.position == at) item.waits.push_back(for_note(ids_.copied(link, true, gate.out)));
    }
    const auto& in = plan.links[link].in;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].device != static_cast<std::uint32_t>(device_)) continue;
      if (stay_of(in[i]).needed == at) item.waits.push_back(for_note(ids_.copied(link, false, i)));
    }
  }

  // The stay of an activation of this device.
  [[nodiscard]] const Stay& stay_of(const Copy& copy) const {
    return stays_(place_.virtual_stage(device_, copy.chunk), static_cast<int>(copy.unit));
  }

  void add_copies(const CopyPlan& plan) {
    const std::size_t link = plan.link_of(static_cast<std::uint32_t>(device_));
    const LinkCopies& copies = plan.links[link];
    for (std::size_t i = 0; i < copies.out.size(); ++i) {
      if (copies.out[i].device != static_cast<std::uint32_t>(device_)) continue;
      Item item = copy_item(link, true, i);
      item.copy = copies.out[i];
      item.waits.push_back(
          for_item(Lane::kCompute, script_.item_of_position[stay_of(copies.out[i]).made]));
      lane(Lane::kCopyOut).push_back(std::move(item));
    }
    for (std::size_t i = 0; i < copies.in.size(); ++i) {
      const Copy& copy = copies.in[i];
      if (copy.device != static_cast<std::uint32_t>(device_)) continue;
      Item item = copy_item(link, false, i);
      item.copy = copy;
      const auto out = std::ranges::find_if(copies.out, [&](const Copy& other) {
        return other.device == copy.device && other.chunk == copy.chunk && other.unit == copy.unit;
      });
      item.waits.push_back(
          for_note(ids_.copied(link, true, static_cast<std::size_t>(out - copies.out.begin()))));
      if (copy.after != Copy::kAnyTime) {
        item.waits.push_back(for_item(Lane::kCompute, script_.item_of_position[copy.after]));
      }
      lane(Lane::kCopyIn).push_back(std::move(item));
    }
  }

  // One copy at a time goes over a link in a direction, in the order of the plan.
  Item copy_item(std::size_t link, bool out, std::size_t number) {
    Item item{.kind = Item::Kind::kCopy, .position = static_cast<std::uint32_t>(number)};
    item.seconds = durations_.copies[link][out ? 0 : 1][number];
    if (number > 0) item.waits.push_back(for_note(ids_.copied(link, out, number - 1)));
    const int per_link = program_.copies()->devices_per_link;
    Posting end{ids_.copied(link, out, number), {}};
    const int first = static_cast<int>(link) * per_link;
    for (int d = first; d < std::min(first + per_link, place_.devices()); ++d) end.to.push_back(d);
    item.posts.push_back(std::move(end));
    return item;
  }

  const Program& program_;
  const Placement& place_;
  NoteIds ids_;
  const Durations& durations_;
  Semantics semantics_;
  int device_;
  std::vector<int> everybody_;
  Grid<Stay> stays_;               // by virtual stage and unit, where activations are copied
  std::vector<std::size_t> made_;  // by message: the item of the pass that makes it
  DeviceScript script_;
};

}  // namespace

Semantics semantics_of(const Coupling& coupling, bool torch) {
  if (torch) return Semantics::kTorch;
  return coupling.blocking ? Semantics::kCalls : Semantics::kAsynchronous;
}

std::vector<DeviceScript> scripts_of(const Program& program, const Durations& durations,
                                     Semantics semantics, const Coupling& coupling) {
  if (program.wrap_around() != WrapAround::kEvery) {
    throw InfeasibleError("no runtime executes a program that does not wait for every message");
  }
  std::optional<CommBatches> batches;
  if (semantics == Semantics::kCalls) batches.emplace(program, coupling.blocking.value());
  std::vector<std::vector<MessageId>> order(program.placement().devices());
  if (semantics == Semantics::kTorch) order = torch_message_order(program);
  std::vector<DeviceScript> scripts;
  for (int device = 0; device < program.placement().devices(); ++device) {
    Scribe scribe(program, durations, semantics, device);
    scripts.push_back(scribe.write(batches ? &*batches : nullptr, order[device]));
  }
  return scripts;
}

}  // namespace pipesim::runtime
