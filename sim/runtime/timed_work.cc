#include "sim/runtime/timed_work.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "sim/core/error.h"
#include "sim/pipeline/dependencies.h"

namespace pipesim::runtime {
namespace {

using Number = std::uint64_t;

// Mixes the kind of pass, its place, and its input: splitmix64's finalizer.
Number mixed(PassKind kind, int where, Number from) {
  Number x = from + 0x9e3779b97f4a7c15ULL *
                        (16 * static_cast<Number>(where) + static_cast<Number>(kind) + 1);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}
Number seed(std::uint32_t unit) { return mixed(PassKind::kIF, -1, unit); }
Number backward_of(int vs, Number gradient, Number activation) {
  return mixed(PassKind::kB, vs, gradient ^ mixed(PassKind::kR, vs, activation));
}
Number weight_of(int vs, Number gradient, Number activation) {
  return mixed(PassKind::kW, vs, gradient + mixed(PassKind::kR, vs, activation));
}

using Buffer = std::vector<Number>;

Number number_in(std::span<const std::byte> bytes) {
  Number first = 0;
  if (bytes.size() < sizeof first) throw LogicError("a message without bytes");
  std::memcpy(&first, bytes.data(), sizeof first);
  for (std::size_t at = 0; at + sizeof first <= bytes.size(); at += sizeof first) {
    if (std::memcmp(bytes.data() + at, &first, sizeof first) != 0) {
      throw LogicError(fmt::format("byte {} of a message is not what was sent", at));
    }
  }
  return first;
}
Number number_in(const Buffer& buffer) { return number_in(std::as_bytes(std::span(buffer))); }

class TimedWork final : public Work {
 public:
  TimedWork(const Program& program, int device)
      : program_(program), place_(program.placement()), ids_(program), device_(device) {}

  void run(const Pass& pass, const Board& board) override {
    program_.visit_parts(pass, [&](const Pass& part) { run_part(part, board); });
  }

  void start_copy(const Copy& copy, bool out) override {
    Activation& of = kept(copy);
    Buffer& to = out ? of.host : of.device;
    const Buffer& from = out ? of.device : of.host;
    if (from.empty()) throw LogicError("a copy of an activation that is not there");
    to.resize(from.size());
    std::memcpy(to.data(), from.data(), from.size() * sizeof(Number));
    count();
  }
  void end_copy(const Copy& copy, bool out) override {
    Activation& of = kept(copy);
    Buffer().swap(out ? of.device : of.host);
    count();
  }

  std::span<const std::byte> bytes(NoteId note) override {
    payload_.assign(kNoteBytes / sizeof(Number), made_.at(note));
    return std::as_bytes(std::span(payload_));
  }

  void close(DeviceRecord& record) override {
    record.digest = digest_;
    record.peak_bytes = static_cast<double>(peak_);
    if (!kept_.empty()) throw LogicError("an activation is left when all passes have run");
  }

 private:
  struct Activation {
    Buffer device, host;
    Number gradient = 0;
  };

  void run_part(const Pass& pass, const Board& board) {
    if (is_vocabulary(pass.kind)) {
      run_vocabulary(pass, board);
    } else if (pass.kind == PassKind::kF) {
      forward(pass, board);
    } else if (is_backward(pass.kind)) {
      backward(pass, board);
    } else if (pass.kind == PassKind::kW) {
      weight(stage(pass), pass.microbatch);
    } else {
      (void)activation(stage(pass), pass.microbatch);  // R starts from it
    }
  }

  [[nodiscard]] int stage(const Pass& pass) const {
    return place_.virtual_stage(device_, pass.chunk);
  }
  Activation& kept(const Copy& copy) {
    return kept_.at({place_.virtual_stage(device_, copy.chunk), copy.unit});
  }
  Number activation(int vs, std::uint32_t unit) {
    const Buffer& buffer = kept_.at({vs, unit}).device;
    if (buffer.empty()) throw LogicError("a pass needs an activation that is on the host");
    return number_in(buffer);
  }

  // The result that an F or B starts from: of this device, or as it was sent.
  Number message(const StagePass& source, std::uint32_t unit, const Board& board) {
    const NoteId data = ids_.data(ids_.message(source.kind, source.vs, unit));
    if (place_.device(source.vs) == device_) return made_.at(data);
    if (!board.posted(data)) throw LogicError("a pass runs before its message has come");
    return number_in(board.bytes(data));
  }

  Number collective(Barrier barrier, std::uint32_t unit, const Board& board) {
    if (!joins_all_devices(barrier)) {
      const int of = place_.device(gathered_by(place_, barrier).vs);
      return number_in(board.bytes(ids_.part(barrier, unit, of)));
    }
    Number sum = 0;
    for (int of = 0; of < place_.devices(); ++of) {
      sum += number_in(board.bytes(ids_.part(barrier, unit, of)));
    }
    return sum;
  }

  Number input(const StagePass& at, std::uint32_t unit, const Board& board, Number entry) {
    const auto barrier = collective_before(place_, program_.vocabulary(), at);
    if (barrier) return collective(*barrier, unit, board);
    const StagePass source = source_of(place_, at);
    return source.exists() ? message(source, unit, board) : entry;
  }

  void forward(const Pass& pass, const Board& board) {
    const int vs = stage(pass);
    const Number from = input({PassKind::kF, vs}, pass.microbatch, board, seed(pass.microbatch));
    kept_[{vs, pass.microbatch}].device.assign(kActivationBytes / sizeof(Number), from);
    count();
    make(pass, vs, mixed(PassKind::kF, vs, from));
  }

  void backward(const Pass& pass, const Board& board) {
    const int vs = stage(pass);
    const Number gradient = input({pass.kind, vs}, pass.microbatch, board, 0);
    const Number held = activation(vs, pass.microbatch);
    kept_.at({vs, pass.microbatch}).gradient = gradient;
    if (pass.kind == PassKind::kBW) weight(vs, pass.microbatch);
    make({PassKind::kB, pass.chunk, pass.microbatch}, vs, backward_of(vs, gradient, held));
  }

  void weight(int vs, std::uint32_t unit) {
    digest_ += weight_of(vs, kept_.at({vs, unit}).gradient, activation(vs, unit));
    kept_.erase({vs, unit});
    count();
  }

  // Notes the result under the numbers of all notes that may carry it.
  void make(const Pass& pass, int vs, Number result) {
    made_[ids_.data(ids_.message(pass.kind, vs, pass.microbatch))] = result;
    const auto after = collective_after(place_, program_.vocabulary(), {pass.kind, vs});
    if (after) made_[ids_.part(*after, pass.microbatch, device_)] = result;
  }

  void run_vocabulary(const Pass& pass, const Board& board) {
    const StagePass at{pass.kind, stage(pass)};
    const std::uint32_t unit = pass.microbatch;
    const auto before = collective_before(place_, program_.vocabulary(), at);
    const Number from = before ? collective(*before, unit, board) : seed(unit);
    const Number result = mixed(pass.kind, device_, from);
    if (pass.kind == PassKind::kT || pass.kind == PassKind::kIB) digest_ += result;
    const auto after = collective_after(place_, program_.vocabulary(), at);
    if (after) made_[ids_.part(*after, unit, device_)] = result;
  }

  void count() {
    std::size_t held = 0;
    for (const auto& [key, of] : kept_) held += of.device.size() * sizeof(Number);
    peak_ = std::max(peak_, held);
  }

  const Program& program_;
  const Placement& place_;
  NoteIds ids_;
  int device_;
  std::map<std::pair<int, std::uint32_t>, Activation> kept_;  // by virtual stage and unit
  std::map<NoteId, Number> made_;
  Buffer payload_;
  Number digest_ = 0;
  std::size_t peak_ = 0;
};

// One unit through the whole model, forwards and back.
class Straight {
 public:
  explicit Straight(const Program& program)
      : program_(program),
        place_(program.placement()),
        sharded_(is_sharded(program.vocabulary())),
        digests_(static_cast<std::size_t>(place_.devices()), 0) {}

  std::vector<std::uint64_t> digests() && {
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      if (place_.upstream(vs) >= 0) continue;
      const int units = program_.shape().units();
      for (int unit = place_.first_unit(vs, units); unit < place_.end_unit(vs, units); ++unit) {
        run(vs, static_cast<std::uint32_t>(unit));
      }
    }
    return std::move(digests_);
  }

 private:
  void run(int first, std::uint32_t unit) {
    std::vector<std::pair<int, Number>> kept;
    Number now = sharded_ ? everywhere(PassKind::kIF, seed(unit)) : seed(unit);
    for (int vs = first; vs >= 0; vs = place_.downstream(vs)) {
      kept.emplace_back(vs, now);
      now = mixed(PassKind::kF, vs, now);
    }
    if (sharded_) {
      const Number softmax = everywhere(PassKind::kS, now);
      now = everywhere(PassKind::kT, softmax);
      if (program_.vocabulary() == VocabularyPlacement::kVocab2) now = softmax;
    }
    for (; !kept.empty(); kept.pop_back()) {
      const auto [vs, held] = kept.back();
      digests_[place_.device(vs)] += weight_of(vs, now, held);
      now = backward_of(vs, now, held);
    }
    if (sharded_) (void)everywhere(PassKind::kIB, now);
  }

  Number everywhere(PassKind kind, Number from) {
    Number sum = 0;
    for (int device = 0; device < place_.devices(); ++device) {
      const Number part = mixed(kind, device, from);
      if (kind == PassKind::kT || kind == PassKind::kIB) digests_[device] += part;
      sum += part;
    }
    return sum;
  }

  const Program& program_;
  const Placement& place_;
  bool sharded_;
  std::vector<std::uint64_t> digests_;
};

}  // namespace

std::unique_ptr<Work> make_timed_work(const Program& program, int device) {
  return std::make_unique<TimedWork>(program, device);
}

std::vector<std::uint64_t> expected_digests(const Program& program) {
  return Straight(program).digests();
}

}  // namespace pipesim::runtime
