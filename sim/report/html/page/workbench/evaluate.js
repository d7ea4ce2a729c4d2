// Times an order of passes: pure functions, without a page, so that node runs them too.
//
// The arithmetic of sim/execution/evaluate.h, operation by operation: tests/report/workbench_test.cc holds the numbers,
// the critical path and the refusals equal to the last bit. A model is what sim/report/workbench/lowered.h writes,
// an order a list of passes per device. Where units cost unequally `kinds` has the stages of each
// kind, `sizes` their sizes, and `stages` is their mean; else null.

// A pass is {kind, vs, unit, text, parts}; parts are the F and the BW, B or W of an overlapped block (FB), else itself.
function passOf(text) {
  const parts = text.split('&').map(part => {
    const [, vs, kind, unit] = part.match(/^(\d+)([A-Z]+)(\d+)$/);
    return {kind, vs: Number(vs), unit: Number(unit), text: part};
  });
  for (const part of parts) part.parts = [part];
  return parts.length === 1 ? parts[0] : {kind: 'FB', vs: parts[0].vs, unit: parts[0].unit, parts};
}
const partText = ({vs, kind, unit, text}) => text ?? `${vs}${kind}${unit}`;
const passText = pass => pass.parts.map(partText).join('&');
const orderOf = texts => texts.map(text => text.split(' ').map(passOf));

const isBackward = kind => kind === 'B' || kind === 'BW';
const isVocabulary = kind => kind === 'S' || kind === 'T' || kind === 'IF' || kind === 'IB';
const stagesOfCopy = model => model.device_of.length / model.directions;
const upstream = (model, vs) => (vs % stagesOfCopy(model) === 0 ? -1 : vs - 1);
const downstream = (model, vs) => (vs % stagesOfCopy(model) + 1 === stagesOfCopy(model) ? -1 : vs + 1);

// Which of the stages of its device it is, in forward order.
function chunkOf(model, vs) {
  let chunk = 0;
  for (let each = 0; each < vs; ++each) if (model.device_of[each] === model.device_of[vs]) ++chunk;
  return chunk;
}

// The pass of the same unit whose result this one starts from, or null; B stands for BW too.
function sourceOf(model, {kind, vs}) {
  if (isVocabulary(kind)) return null;
  if (kind === 'F') return upstream(model, vs) < 0 ? null : {kind: 'F', vs: vs - 1};
  if (kind === 'W') return {kind: 'B', vs};
  if (kind === 'R') return {kind: 'F', vs};
  return downstream(model, vs) < 0 ? {kind: 'F', vs} : {kind: 'B', vs: vs + 1};
}
// The stage whose F or B starts from the result of this F or B, or -1.
function targetOf(model, {kind, vs}) {
  if (isBackward(kind)) return upstream(model, vs);
  return downstream(model, vs) < 0 ? vs : vs + 1;
}
// The split of the same sequence that comes before it on every stage, or -1.
function splitBefore({kind, unit}, splits) {
  if (kind === 'F' && unit % splits > 0) return unit - 1;
  return isBackward(kind) && unit % splits + 1 < splits ? unit + 1 : -1;
}

// ---- what a pass takes and holds ----

const stageOf = (model, vs, unit) => (model.kinds ? model.kinds[model.kind_of_unit[unit]][vs] : model.stages[vs]);
const sizeOf = (model, unit) => (model.kinds ? model.sizes[model.kind_of_unit[unit]] : 1);
const vocabularyOf = (model, vs) => model.vocabulary[model.device_of[vs]];
const backwardOf = stage => stage.backward_input + stage.backward_weight;

function shareOf(stage) {
  const apart = stage.forward + backwardOf(stage);
  return apart > 0 ? stage.overlapped / apart : 1;
}

// Seconds of the block of a forward of one stage and a BW of another, where the model has no number.
function blockSeconds(forward, backward) {
  const f = forward.forward, bw = backwardOf(backward);
  if (forward.overlapped === backward.overlapped && f === backward.forward && bw === backwardOf(forward)) {
    return forward.overlapped;
  }
  return Math.max(shareOf(forward) * f + shareOf(backward) * bw,
    Math.min(f, forward.overlapped), Math.min(bw, backward.overlapped));
}

// A block of units that differ from the mean takes the same share of their F and BW as the mean's.
function wholeBlockSeconds(model, first, second, forward, backward) {
  if (!model.blocks) return blockSeconds(forward, backward);
  const block = model.blocks[first * (model.blocks.length / model.device_of.length) + chunkOf(model, second)];
  if (!model.kinds) return block;
  return block * ((forward.forward + backwardOf(backward)) / (model.stages[first].forward + backwardOf(model.stages[second])));
}

// Seconds of an F with BW, B or W: with B or W alone the share that F with BW takes, and no less than either pass.
function pairSeconds(model, [first, second]) {
  const forward = stageOf(model, first.vs, first.unit), backward = stageOf(model, second.vs, second.unit);
  const whole = wholeBlockSeconds(model, first.vs, second.vs, forward, backward);
  if (second.kind === 'BW') return whole;
  const f = forward.forward, part = second.kind === 'B' ? backward.backward_input : backward.backward_weight;
  const apart = f + backwardOf(backward);
  return Math.max((apart > 0 ? whole / apart : 1) * (f + part), Math.min(f, whole), Math.min(part, whole));
}

function passSeconds(model, pass) {
  if (pass.kind === 'FB') return pairSeconds(model, pass.parts);
  if (isVocabulary(pass.kind)) return sizeOf(model, pass.unit) * vocabularyOf(model, pass.vs)[pass.kind];
  const stage = stageOf(model, pass.vs, pass.unit);
  switch (pass.kind) {
    case 'F': return stage.forward;
    case 'B': return stage.backward_input;
    case 'W': return stage.backward_weight;
    case 'R': return stage.recompute ?? stage.forward;
    default: return backwardOf(stage);
  }
}

// Bytes that it acquires at its start and releases at its end.
function passBytes(model, recomputes, pass) {
  if (pass.kind === 'FB') {
    const [forward, backward] = pass.parts.map(part => passBytes(model, recomputes, part));
    return [forward[0], backward[1]];
  }
  if (isVocabulary(pass.kind)) {
    const bytes = sizeOf(model, pass.unit) * vocabularyOf(model, pass.vs).bytes;
    return [pass.kind === 'S' ? bytes : 0, pass.kind === 'T' ? bytes : 0];
  }
  const {activation, weight_stash, checkpoint} = stageOf(model, pass.vs, pass.unit);
  switch (pass.kind) {
    case 'F': return [recomputes[pass.vs] ? checkpoint : activation, 0];
    case 'R': return [activation - checkpoint, 0];
    case 'B': return [0, activation - weight_stash];
    case 'W': return [0, weight_stash];
    default: return [0, activation];
  }
}

// Seconds of passes and of what runs beside them, for evaluate(); in `slots` each pass takes one and the rest none.
const inSeconds = model => ({
  pass: pass => passSeconds(model, pass) * model.slowdown[model.device_of[pass.vs]],
  message: (from, to, unit) => (from < to ? stageOf(model, from, unit).transfer : stageOf(model, to, unit).transfer_back),
  join: (join, unit) => sizeOf(model, unit) * join.seconds,
  copy: ({vs, unit, back, factor}) => factor * (back ? stageOf(model, vs, unit).copy_in : stageOf(model, vs, unit).copy_out),
});
const inSlots = () => ({pass: () => 1, message: () => 0, join: () => 0, copy: () => 0});

// ---- the walk ----

const kNotYet = -1;

// The collectives of a sharded vocabulary (sim/execution/joins.h), one of each kind for each unit.
class Joins {
  constructor(walk) {
    this.walk = walk;
    this.before = new Map();  // by stage and kind: the collective that the pass waits for
    this.after = new Map();   // and the one that waits for it
    for (const join of walk.model.joins) {
      for (const pass of join.waits) this.before.set(pass.join(''), join);
      join.gathers.forEach((pass, slot) => this.after.set(pass.join(''), {join, slot: join.of_all ? slot : 0}));
    }
    this.found = new Map();  // by collective and unit: {results, count, node}
  }
  at(join, unit) {
    const key = join.name + unit;
    if (!this.found.has(key)) this.found.set(key, {results: [], count: 0, node: kNotYet});
    return this.found.get(key);
  }
  waitedFor({vs, kind}) { return this.before.get(vs + (isBackward(kind) ? 'B' : kind)) ?? null; }

  // The pass has run. With the last that it waits for, the collective goes, and wakes every device.
  arrive({vs, kind, unit}, node) {
    const after = this.after.get(vs + (isBackward(kind) ? 'B' : kind));
    if (!after) return;
    const {join, slot} = after, found = this.at(join, unit);
    found.results[slot] = node;
    if (++found.count < (join.of_all ? join.gathers.length : 1)) return;
    found.node = this.walk.add(this.walk.takes.join(join, unit), found.results, {kind: 'vocabulary', device: null, of: `${join.name} of microbatch`, unit});
    this.walk.order.forEach((_, device) => this.walk.wake(device));
  }
  // The node of the collective that waits for the pass, or kNotYet.
  behind({vs, kind, unit}) {
    const after = this.after.get(vs + kind);
    return after ? this.at(after.join, unit).node : kNotYet;
  }
}

// Runs passes in the order of `walk` (sim/execution/walk.h), so that ties fall alike. Nodes stand in the order of the
// task graph's tasks: a pass, or beside passes (device: -1) a message, a collective or a copy.
class Walk {
  constructor(model, order, takes) {
    Object.assign(this, {model, order, takes});
    this.units = 1 + order.flat().reduce((most, pass) => Math.max(most, ...pass.parts.map(part => part.unit)), 0);
    const nodes = () => new Int32Array(model.device_of.length * this.units).fill(kNotYet);
    this.arrived = {F: nodes(), B: nodes()};  // what the receiver waits for, by stage and unit
    this.recomputes = model.stages.map(() => false);
    for (const pass of order.flat()) if (pass.kind === 'R') this.recomputes[pass.vs] = true;
    Object.assign(this, {start: [], end: [], before: [], device: [], at: []});  // by node; `before` is what it waited for longest
    this.beside = [];  // {kind, device, of, start, end}: collectives and copies
    this.devices = order.map(() => ({
      at: 0, clock: 0, ended: 0, last: kNotYet, ran: false, first: 0, busy: 0, held: 0, peak: 0, inFlight: 0, peakInFlight: 0,
    }));
    this.joins = model.joins.length > 0 ? new Joins(this) : null;
    this.copies = model.copies ? new Copies(this) : null;
  }

  // True if all passes could run. A device runs on until it must wait; then the next in the queue does.
  run() {
    this.queue = this.order.map((_, device) => device);
    this.queued = this.queue.map(() => true);
    for (let head = 0; head < this.queue.length; ++head) {
      const device = this.queue[head];
      this.queued[device] = false;
      while (this.devices[device].at < this.order[device].length && this.step(device)) ++this.devices[device].at;
    }
    return this.devices.every(({at}, device) => at === this.order[device].length);
  }
  wake(device) {
    if (this.queued[device]) return;
    this.queued[device] = true;
    this.queue.push(device);
  }

  // Runs the device's next pass, if all is there that it waits for.
  step(device) {
    const pass = this.order[device][this.devices[device].at];
    const inputs = {F: kNotYet, B: kNotYet};
    for (const part of pass.parts) if (!this.ready(part, inputs)) return false;
    if (this.model.together !== null && isVocabulary(pass.kind)) return this.stepTogether(device, pass, inputs.F);
    const copied = this.copies ? this.copies.awaited(pass).map(({node}) => node) : [];
    if (copied.includes(kNotYet)) return false;
    this.runPass(device, pass, [...copied, inputs.F, inputs.B]);
    return true;
  }

  ready(part, inputs) {
    const {vs, unit} = part;
    const letter = isBackward(part.kind) ? 'B' : 'F';
    const before = splitBefore(part, this.model.splits);
    if (before >= 0 && this.arrived[letter][vs * this.units + before] === kNotYet) return false;
    const join = this.joins ? this.joins.waitedFor(part) : null;
    if (join) {
      inputs[letter] = this.joins.at(join, unit).node;
      if (inputs[letter] === kNotYet) return false;
    }
    const source = sourceOf(this.model, part);
    if (!source) return true;
    const node = this.arrived[source.kind][source.vs * this.units + unit];
    if (source.vs === vs) return node !== kNotYet;
    if (this.model.wraps > 1 && !this.awaits(source.vs, vs, unit)) return true;
    inputs[letter] = node;
    return node !== kNotYet;
  }

  // False for a message from the last device to the first that nobody waits for (WrapAround, sim/pipeline/program.h).
  awaits(from, to, unit) {
    const [up, down] = [Math.min(from, to), Math.max(from, to)].map(vs => this.model.device_of[vs]);
    return up !== this.model.devices - 1 || down !== 0 || unit % this.model.wraps === 0;
  }

  // A pass of an interlaced vocabulary runs on all devices once each has come to it; they go on after its collective.
  stepTogether(device, pass, input) {
    const here = this.order.map((passes, d) => passes[this.devices[d].at]);
    if (here.some(each => !each || each.kind !== pass.kind || each.unit !== pass.unit)) return false;
    const met = this.add(this.model.together, [...this.devices.map(({last}) => last), input]);
    here.forEach((each, d) => {
      this.runPass(d, each, [met]);
      if (d === device) return;
      ++this.devices[d].at;
      this.wake(d);
    });
    const behind = this.joins.behind(pass);
    if (behind === kNotYet) return true;
    for (const state of this.devices) Object.assign(state, {last: behind, clock: Math.max(state.clock, this.end[behind])});
    return true;
  }

  // The node that ends last, the first of several; kNotYet if there is none.
  latest(nodes) {
    let found = kNotYet;
    for (const node of nodes) if (node >= 0 && (found < 0 || this.end[node] > this.end[found])) found = node;
    return found;
  }

  addNode(start, seconds, before, device, at) {
    this.start.push(start);
    this.end.push(start + seconds);
    this.before.push(before);
    this.at.push(at);
    return this.device.push(device) - 1;
  }
  // Something beside passes, that waits for nodes.
  add(seconds, inputs, beside = null) {
    const before = this.latest(inputs);
    const node = this.addNode(before < 0 ? 0 : this.end[before], seconds, before, -1, 0);
    if (!beside) return node;
    beside.start = this.start[node];
    beside.end = this.end[node];
    this.beside.push(beside);
    return node;
  }

  runPass(device, pass, inputs) {
    const state = this.devices[device];
    const input = this.latest(inputs), before = this.latest([state.last, ...inputs]);
    const start = Math.max(state.clock, input < 0 ? 0 : this.end[input]);
    const seconds = this.takes.pass(pass);
    const node = this.addNode(start, seconds, before, device, state.at);
    if (!state.ran) state.first = start;
    Object.assign(state, {ran: true, last: node, clock: start + seconds, ended: start + seconds});
    state.busy += seconds;
    this.account(state, device, pass, start);
    if (this.copies) this.copies.ran(device, pass, node);
    for (const part of pass.parts) this.deliver(device, part, node);
  }

  deliver(device, part, node) {
    if (part.kind === 'F' || isBackward(part.kind)) {
      const to = targetOf(this.model, part);
      const leaves = to >= 0 && this.model.device_of[to] !== device;
      this.arrived[isBackward(part.kind) ? 'B' : 'F'][part.vs * this.units + part.unit] =
        leaves ? this.add(this.takes.message(part.vs, to, part.unit), [node]) : node;
      if (leaves) this.wake(this.model.device_of[to]);
    }
    if (this.joins) this.joins.arrive(part, node);
  }

  account(state, device, pass, start) {
    const [acquired, released] = passBytes(this.model, this.recomputes, pass);
    if (this.copies) this.copies.changes[device].push([start, acquired], [state.ended, -released]);
    state.held += acquired;
    state.inFlight += pass.kind === 'F' || pass.kind === 'FB' ? 1 : 0;
    state.peak = Math.max(state.peak, state.held);
    state.peakInFlight = Math.max(state.peakInFlight, state.inFlight);
    state.held -= released;
    state.peak = Math.max(state.peak, state.held);  // B acquires at its end where W needs more
    state.inFlight -= pass.parts.some(({kind}) => kind === 'W' || kind === 'BW') ? 1 : 0;
  }

  // Passes from one that waits for nothing to what ends last (ties: the first).
  criticalPath() {
    const path = [];
    for (let node = this.latest(this.end.keys()); node >= 0; node = this.before[node]) {
      if (this.device[node] >= 0) path.push([this.device[node], this.at[node]]);
    }
    return path.reverse();
  }

  peakOf(device) {
    if (!this.copies) return this.devices[device].peak;
    return this.model.copies.ordered ? this.copies.orderedPeak(device) : this.copies.peak(device);
  }

  result() {
    const {order, devices} = this;
    const start = order.map(passes => new Float64Array(passes.length));
    const end = order.map(passes => new Float64Array(passes.length));
    this.device.forEach((device, node) => {
      if (device < 0) return;
      start[device][this.at[node]] = this.start[node];
      end[device][this.at[node]] = this.end[node];
    });
    let first = devices[0].first, last = 0, cost = 0, work = 0;
    for (const each of devices) {
      first = Math.min(first, each.first);
      last = Math.max(last, each.ended);
      if (each.ended - each.first > cost) [cost, work] = [each.ended - each.first, each.busy];
    }
    return {
      start, end, cost, work, first, makespan: last - first, bubble_rate: (cost - work) / cost,
      devices: devices.map((each, device) => ({
        first_start: each.first, last_end: each.ended, busy: each.busy, peak_activation: this.peakOf(device),
        peak_in_flight: each.peakInFlight,
      })),
      critical: this.criticalPath(),
      beside: this.beside,
    };
  }
}

// ---- why an order cannot run ----

const provides = (part, {kind, vs, unit}) =>
  part.vs === vs && part.unit === unit && (kind === 'B' ? isBackward(part.kind) : part.kind === kind);

class Deadlock {
  constructor({model, order, devices, joins, copies}) {
    Object.assign(this, {model, order, joins, copies, position: devices.map(({at}) => at)});
  }

  ran({kind, vs, unit}) {
    const device = this.model.device_of[vs];
    const done = this.order[device].slice(0, this.position[device]);
    return done.some(pass => pass.parts.some(part => provides(part, {kind, vs, unit})));
  }

  // The part as the order has it: a backward is B or BW.
  there({kind, vs, unit}) {
    const parts = this.order[this.model.device_of[vs]].flatMap(pass => pass.parts);
    return parts.find(part => provides(part, {kind, vs, unit})) ?? {kind, vs, unit};
  }

  // The first pass that the part waits for and that has not run, or null.
  missing(part) {
    const wanted = [];
    const before = splitBefore(part, this.model.splits);
    if (before >= 0) wanted.push({kind: isBackward(part.kind) ? 'B' : part.kind, vs: part.vs, unit: before});
    const source = sourceOf(this.model, part);
    if (source) wanted.push({...source, unit: part.unit});
    const join = this.joins ? this.joins.waitedFor(part) : null;
    for (const [vs, kind] of join ? join.gathers : []) wanted.push({kind, vs, unit: part.unit});
    if (this.model.together !== null && isVocabulary(part.kind)) wanted.push(...this.absent(part));
    return wanted.find(each => !this.ran(each)) ?? null;
  }

  // The same pass of the devices that have not come to it.
  absent({kind, unit}) {
    const there = this.order.map((passes, device) => passes[this.position[device]]);
    return there.flatMap((pass, device) => (pass?.kind === kind && pass.unit === unit ? []
      : [{kind, vs: this.model.device_of.indexOf(device), unit}]));
  }

  // Each stuck device waits for a pass that stands behind the one where its own device is stuck:
  // following that from any of them comes round, or to one that waits for a copy.
  // {text, passes: [[device, place]]}.
  cycle() {
    const seen = [];
    let device = this.position.findIndex((at, d) => at < this.order[d].length);
    while (!seen.some(each => each.device === device)) {
      const stuck = this.order[device][this.position[device]];
      const wanted = stuck.parts.map(part => this.missing(part)).find(each => each);
      if (!wanted) return {text: this.copies.why(stuck), passes: [[device, this.position[device]]]};
      seen.push({device, stuck, wanted});
      device = this.model.device_of[wanted.vs];
    }
    const round = seen.slice(seen.findIndex(each => each.device === device));
    const links = round.map(({stuck, wanted}) => `${passText(stuck)} needs ${partText(this.there(wanted))}, which stands behind `);
    return {text: links.join('') + passText(round[0].stuck), passes: round.map(each => [each.device, this.position[each.device]])};
  }
}

// R rebuilds what the backward of its stage needs: behind that it is no program.
function lateRecompute(order) {
  for (const [device, passes] of order.entries()) {
    const gone = new Set();
    for (const [at, pass] of passes.entries()) {
      for (const part of pass.parts) {
        const of = `${part.vs} ${part.unit}`;
        if (isBackward(part.kind)) gone.add(of);
        if (part.kind !== 'R' || !gone.has(of)) continue;
        return {text: `${partText(part)} stands behind the backward of microbatch ${part.unit}, which needs it`, passes: [[device, at]]};
      }
    }
  }
  return null;
}

// {start, end (by device and place), makespan, cost, work, bubble_rate, devices, critical}, or {fault:
// {text, passes}} of an order that cannot run. O(passes).
function evaluate(model, order, takes = inSeconds(model)) {
  const late = lateRecompute(order);
  if (late) return {fault: late};
  const walk = new Walk(model, order, takes);
  return walk.run() ? walk.result() : {fault: new Deadlock(walk).cycle()};
}
