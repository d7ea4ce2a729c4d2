// A person's changes to an order: pure functions from one state to the next, and undo.
//
// A state is {model, order, microbatches, limit, wire}: the input of evaluate(), the limit of a device's peak (null:
// none), and the seconds of a message between two devices. States are never changed in place.

// The schedule's own order for a number of microbatches, with the durations and the limit of `like`.
function plannedState(schedule, microbatches, like = null) {
  const model = {...schedule.model, copies: schedule.copies[microbatches] ?? null};
  if (like) {
    model.stages = withWires(model, like.model.stages, like.wire, schedule.unmovable === null);
    model.kinds = like.model.kinds;
  }
  return {
    model, order: orderOf(schedule.orders[microbatches]), microbatches,
    limit: like ? like.limit : schedule.limit, wire: like ? like.wire : schedule.wire,
  };
}

// Messages between neighbours take `wire` where they stand on two devices, and nothing on one. Where a
// stage cannot be moved, its message takes what it took.
function withWires(model, stages, wire, movable) {
  return movable ? stages.map((stage, vs) => {
    const next = downstream(model, vs);
    const transfer = next >= 0 && model.device_of[next] !== model.device_of[vs] ? wire : 0;
    return {...stage, transfer, transfer_back: transfer};
  }) : stages;
}

// Why the page has no order for so many microbatches; null where it has one.
function whyNoOrder(schedule, microbatches) {
  if (schedule.orders[microbatches]) return null;
  const numbers = Object.keys(schedule.orders).join(', ');
  return `${schedule.refused[microbatches] ?? 'the page has no order for it'}; it has those of m = ${numbers}`;
}

// ---- order ----

function whereIs(order, text) {
  for (const [device, passes] of order.entries()) {
    const at = passes.findIndex(pass => passText(pass) === text);
    if (at >= 0) return {device, at};
  }
  return null;
}

// The pass at one place of a device taken to another place there, counted without it.
function withPassMoved(state, device, from, to) {
  const passes = [...state.order[device]];
  const [pass] = passes.splice(from, 1);
  passes.splice(to, 0, pass);
  return {...state, order: state.order.map((each, d) => (d === device ? passes : each))};
}

// ---- overlapped blocks ----

// The block of two neighbours: an F with a BW, B or W of another unit, in either order; null where they make none.
function blockOf(first, second) {
  const [forward, backward] = first.kind === 'F' ? [first, second] : [second, first];
  const joins = forward.kind === 'F' && ['BW', 'B', 'W'].includes(backward.kind) && forward.unit !== backward.unit;
  return joins ? passOf(`${passText(forward)}&${passText(backward)}`) : null;
}

// Why a pass and the one behind it cannot be joined; null where they can.
function whyNotJoined({model, order}, device, at) {
  const [first, second] = order[device].slice(at, at + 2);
  if (!second) return `${passText(first)} is the last pass of device ${device}`;
  if (!blockOf(first, second)) return `a block is an F beside a BW, B or W of another microbatch, not ${passText(first)} and ${passText(second)}`;
  const known = model.blocks || [first, second].every(({vs}) => model.stages[vs].overlapped !== null);
  return known ? null : 'the scenario does not say how long a block takes (cost.overlapped)';
}

// A block taken apart into its two passes, or a pass joined with the one behind it.
function withBlockChanged(state, device, at) {
  const passes = [...state.order[device]];
  if (passes[at].kind === 'FB') passes.splice(at, 1, ...passes[at].parts);
  else passes.splice(at, 2, blockOf(passes[at], passes[at + 1]));
  return {...state, order: state.order.map((each, d) => (d === device ? passes : each))};
}

// ---- devices ----

// The stage of another device that would change places with this one: of the same chunk.
const partnerOf = (model, vs, device) =>
  model.device_of.findIndex((on, other) => on === device && chunkOf(model, other) === chunkOf(model, vs));

// Why two stages cannot change devices; null where they can.
function whyNotSwapped(schedule, state, a, b) {
  if (schedule.unmovable) return `stages stay on their devices: ${schedule.unmovable}`;
  for (const pass of state.order.flat()) {
    const mine = pass.parts.find(part => part.vs === a || part.vs === b);
    if (mine && pass.kind === 'FB') return `stage ${mine.vs} runs blocks with a stage of its device, such as ${passText(pass)}`;
  }
  return null;
}

// A device holds a stage's weights, so that all passes of a stage move, and every device holds equally
// many: two stages change devices. Each device runs what it then has in the order of `result`'s starts.
function withStagesSwapped(state, result, a, b) {
  const {model, order} = state;
  const device_of = [...model.device_of];
  [device_of[a], device_of[b]] = [device_of[b], device_of[a]];
  const timed = order.map((passes, device) => passes.map((pass, at) => ({pass, start: result.start[device][at]})));
  const on = device => timed.flat().filter(({pass}) => device_of[pass.vs] === device)
    .sort((x, y) => x.start - y.start).map(({pass}) => pass);
  const changed = {...model, device_of};
  return {
    ...state, model: {...changed, stages: withWires(changed, model.stages, state.wire, true)},
    order: order.map((passes, device) => (device === device_of[a] || device === device_of[b] ? on(device) : passes)),
  };
}

// ---- seconds ----

const kDurations = {
  forward: 'F', backward_input: 'B', backward_weight: 'W', overlapped: 'F and BW overlapped', recompute: 'R',
  transfer: 'message', copy_out: 'copy out', copy_in: 'copy in',
};
const kScaled = [...Object.keys(kDurations), 'transfer_back'];  // messages of gradients change as those of activations

const durationOf = (stage, what) => (what === 'recompute' ? stage.recompute ?? stage.forward : stage[what]);

// Seconds of one stage, or the mean of all (for messages: of those that take time).
function secondsOf(state, what, vs = null) {
  let all = state.model.stages.map(stage => durationOf(stage, what));
  if (what === 'transfer') all = all.filter(each => each > 0);
  if (vs !== null && what !== 'transfer') return all[vs];
  if (all.length === 0) return state.wire;
  return all.every(each => each === all[0]) ? all[0] : all.reduce((sum, each) => sum + each, 0) / all.length;
}

// Kinds of units whose seconds change as the mean's of their stage.
function withKinds(before, after) {
  if (!after.kinds) return after;
  const changed = (stage, vs, what) => {
    const [old, now] = [before.stages[vs], after.stages[vs]];
    if (old[what] === now[what]) return stage[what];
    const from = durationOf(old, what);
    return from > 0 ? durationOf(stage, what) * (now[what] / from) : now[what];
  };
  const kinds = after.kinds.map(stages => stages.map((stage, vs) =>
    ({...stage, ...Object.fromEntries(kScaled.map(what => [what, changed(stage, vs, what)]))})));
  return {...after, kinds};
}

// One stage's seconds, or with null those of all in proportion, so that their mean is `seconds`.
function withSeconds(state, what, vs, seconds) {
  const mean = secondsOf(state, what);
  const stages = state.model.stages.map((stage, each) => {
    if (what === 'transfer') {
      const scaled = before => (before === mean ? seconds : mean > 0 ? before * (seconds / mean) : 0);
      return {...stage, transfer: scaled(stage.transfer), transfer_back: scaled(stage.transfer_back)};
    }
    const before = durationOf(stage, what);
    if (vs !== null) return each === vs ? {...stage, [what]: seconds} : stage;
    return {...stage, [what]: before === mean || mean === 0 ? seconds : before * (seconds / mean)};
  });
  const wired = what === 'transfer' && mean === 0;  // a message of no time takes some only where it has a way
  const model = {...state.model, stages: wired ? withWires(state.model, stages, seconds, true) : stages};
  return {...state, model: withKinds(state.model, model), wire: what === 'transfer' ? seconds : state.wire};
}

// ---- saved ----

// PyTorch's letters: I is our B, B our BW.
const kLetters = {F: 'F', B: 'I', W: 'W', BW: 'B', R: 'R'};
const cellPart = ({vs, kind, unit}) => (isVocabulary(kind) ? `${kind}${unit}` : `${vs}${kLetters[kind]}${unit}`);
const cellOf = pass => (pass.kind === 'FB' ? `(${pass.parts.map(cellPart).join(';')})OVERLAP_F_B` : cellPart(pass));

// The schedule CSV that `pipesim run` and PyTorch read: a row per device, a cell per time slot. Null where a row cannot
// hold its copies.
function csvOf(state) {
  if (state.model.copies) return csvWithCopies(state);
  const {start} = evaluate(state.model, state.order, inSlots());
  return state.order.map((passes, device) => {
    const cells = [];
    passes.forEach((pass, at) => { cells[start[device][at]] = cellOf(pass); });
    return Array.from(cells, cell => cell ?? '').join(',') + '\n';
  }).join('');
}

// Copies stand between passes (sim/pipeline/copy_cells.h). OUT is behind its F and IN behind the pass that it follows,
// each in the order of its link. WAIT is before the pass that needs the room.
function csvWithCopies({model, order}) {
  const {links, gates} = model.copies;
  const rows = order.map((passes, device) => {
    const {out, back} = links[device], cells = [], ran = new Set(), gone = new Set();
    const cell = ([of, factor], kind) => of.replace('F', kind) + (kind !== 'WAIT' && factor !== 1 ? 'ALONE' : '');
    let returned = 0;
    for (const pass of passes) {
      const names = pass.parts.map(partText);
      for (const gate of names.map(name => gates[name]).filter(Boolean)) {
        if (gate[1] >= gone.size) return null;
        cells.push(cell(out[gate[1]], 'WAIT'));
      }
      cells.push(cellOf(pass));
      names.forEach(name => ran.add(name));
      for (let next; (next = out[gone.size]) && ran.has(next[0]); gone.add(next[0])) cells.push(cell(next, 'OUT'));
      for (let next; (next = back[returned]) && names.includes(next[2]) && gone.has(next[0]); ++returned) cells.push(cell(next, 'IN'));
    }
    return gone.size === out.length && returned === back.length ? `${cells.join(',')}\n` : null;
  });
  return rows.includes(null) ? null : rows.join('');
}

// ---- undone ----

class History {
  constructor(state) {
    this.past = [];
    this.state = state;
    this.future = [];
    this.kind = null;
  }
  // Changes of one kind in a row, as while a number is typed, are undone together.
  push(state, kind = null) {
    if (kind === null || kind !== this.kind) this.past.push(this.state);
    Object.assign(this, {state, future: [], kind});
  }
  undo() { this.step(this.past, this.future); }
  redo() { this.step(this.future, this.past); }
  step(from, to) {
    if (from.length === 0) return;
    to.push(this.state);
    this.state = from.pop();
    this.kind = null;
  }
}
