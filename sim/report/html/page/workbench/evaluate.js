// Times an order of passes: pure functions, without a page, so that node runs them too.
//
// The arithmetic of sim/execution/evaluate.h, operation by operation: tests/report/workbench_test.cc holds the numbers,
// the critical path and the refusals equal to the last bit. A model is {devices, directions, splits, device_of, stages,
// blocks, kinds, kind_of_unit}, an order a list of passes per device. Where units cost unequally `kinds` has the stages
// of each kind, and `stages` is their mean; else null.

// A pass is {kind, vs, unit, parts}; parts are the F and the BW, B or W of an overlapped block (FB), else itself.
function passOf(text) {
  const parts = text.split('&').map(part => {
    const [, vs, kind, unit] = part.match(/^(\d+)([A-Z]+)(\d+)$/);
    return {kind, vs: Number(vs), unit: Number(unit)};
  });
  for (const part of parts) part.parts = [part];
  return parts.length === 1 ? parts[0] : {kind: 'FB', vs: parts[0].vs, unit: parts[0].unit, parts};
}
const partText = ({vs, kind, unit}) => `${vs}${kind}${unit}`;
const passText = pass => pass.parts.map(partText).join('&');
const orderOf = texts => texts.map(text => text.split(' ').map(passOf));

const isBackward = kind => kind === 'B' || kind === 'BW';
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
  const {activation, weight_stash, checkpoint} = stageOf(model, pass.vs, pass.unit);
  switch (pass.kind) {
    case 'F': return [recomputes[pass.vs] ? checkpoint : activation, 0];
    case 'R': return [activation - checkpoint, 0];
    case 'B': return [0, activation - weight_stash];
    case 'W': return [0, weight_stash];
    default: return [0, activation];
  }
}

// Seconds of passes and messages, for evaluate(); in `slots` each pass takes one and messages none.
const inSeconds = model => ({
  pass: pass => passSeconds(model, pass),
  message: (from, to, unit) => stageOf(model, Math.min(from, to), unit).transfer,
});
const inSlots = () => ({pass: () => 1, message: () => 0});

// ---- the walk ----

const kNotYet = -1;

class Walk {
  constructor(model, order, takes) {
    Object.assign(this, {model, order, takes});
    this.units = 1 + order.flat().reduce((most, pass) => Math.max(most, ...pass.parts.map(part => part.unit)), 0);
    const size = model.device_of.length * this.units;
    const times = () => new Float64Array(size).fill(kNotYet);
    this.arrived = {F: times(), B: times()};  // when the receiver has it, by stage and unit
    this.maker = {F: new Int32Array(size), B: new Int32Array(size)};
    this.recomputes = model.stages.map(() => false);
    for (const pass of order.flat()) if (pass.kind === 'R') this.recomputes[pass.vs] = true;
    this.visited = [];  // {device, at, start, end, before}: `before` is what it waited for longest
    this.devices = order.map(() => ({
      at: 0, clock: 0, last: -1, first: 0, busy: 0, held: 0, peak: 0, inFlight: 0, peakInFlight: 0,
    }));
  }

  // True if all passes could run. A device runs on until it must wait; then the next in the queue does.
  run() {
    const queue = this.order.map((_, device) => device);
    const queued = queue.map(() => true);
    for (let head = 0; head < queue.length; ++head) {
      const device = queue[head];
      queued[device] = false;
      while (this.devices[device].at < this.order[device].length && this.step(device)) {
        for (const woken of this.woken) {
          if (queued[woken]) continue;
          queued[woken] = true;
          queue.push(woken);
        }
        ++this.devices[device].at;
      }
    }
    return this.devices.every(({at}, device) => at === this.order[device].length);
  }

  // Runs the device's next pass, if all is there that it waits for.
  step(device) {
    const pass = this.order[device][this.devices[device].at];
    const messages = {F: null, B: null};
    for (const part of pass.parts) if (!this.ready(part, messages)) return false;
    const end = this.runPass(device, pass, messages);
    this.woken = [];
    for (const part of pass.parts) this.deliver(device, part, end);
    return true;
  }

  ready(part, messages) {
    const {vs, unit} = part;
    const letter = isBackward(part.kind) ? 'B' : 'F';
    const before = splitBefore(part, this.model.splits);
    if (before >= 0 && this.arrived[letter][vs * this.units + before] === kNotYet) return false;
    const source = sourceOf(this.model, part);
    if (!source) return true;
    const at = source.vs * this.units + unit;
    const arrived = this.arrived[source.kind][at];
    if (source.vs !== vs && arrived !== kNotYet) messages[letter] = {arrived, maker: this.maker[source.kind][at]};
    return arrived !== kNotYet;
  }

  runPass(device, pass, messages) {
    const state = this.devices[device];
    const start = Math.max(state.clock, messages.F?.arrived ?? 0, messages.B?.arrived ?? 0);
    const seconds = this.takes.pass(pass);
    const before = this.longest(device, messages);
    if (state.last < 0) state.first = start;
    state.last = this.visited.length;
    state.clock = start + seconds;
    state.busy += seconds;
    this.account(state, pass);
    this.visited.push({device, at: state.at, start, end: state.clock, before});
    return state.clock;
  }

  // The last of the pass's inputs to come: the pass before it, its input, its gradient; -1 for none.
  longest(device, messages) {
    const state = this.devices[device];
    let before = state.last, until = before < 0 ? -Infinity : state.clock;
    for (const message of [messages.F, messages.B]) {
      if (!message || this.visited[message.maker].device === device || !(message.arrived > until)) continue;
      before = message.maker;
      until = message.arrived;
    }
    return before;
  }

  deliver(device, part, end) {
    if (part.kind !== 'F' && !isBackward(part.kind)) return;
    const letter = isBackward(part.kind) ? 'B' : 'F';
    const to = targetOf(this.model, part);
    const at = part.vs * this.units + part.unit;
    this.arrived[letter][at] = to < 0 || to === part.vs ? end : end + this.takes.message(part.vs, to, part.unit);
    this.maker[letter][at] = this.visited.length - 1;
    if (to >= 0 && this.model.device_of[to] !== device) this.woken.push(this.model.device_of[to]);
  }

  account(state, pass) {
    const [acquired, released] = passBytes(this.model, this.recomputes, pass);
    state.held += acquired;
    state.inFlight += pass.kind === 'F' || pass.kind === 'FB' ? 1 : 0;
    state.peak = Math.max(state.peak, state.held);
    state.peakInFlight = Math.max(state.peakInFlight, state.inFlight);
    state.held -= released;
    state.peak = Math.max(state.peak, state.held);  // B acquires at its end where W needs more
    state.inFlight -= pass.parts.some(({kind}) => kind === 'W' || kind === 'BW') ? 1 : 0;
  }

  // From a pass that waits for nothing to the one that ends last (ties: the one visited first).
  criticalPath() {
    let last = 0;
    this.visited.forEach(({end}, i) => { if (end > this.visited[last].end) last = i; });
    const path = [];
    for (let at = last; at >= 0; at = this.visited[at].before) path.push(this.visited[at]);
    return path.reverse().map(({device, at}) => [device, at]);
  }

  result() {
    const {order, devices} = this;
    const start = order.map(passes => new Float64Array(passes.length));
    const end = order.map(passes => new Float64Array(passes.length));
    for (const each of this.visited) {
      start[each.device][each.at] = each.start;
      end[each.device][each.at] = each.end;
    }
    let first = devices[0].first, last = 0, cost = 0, work = 0;
    for (const each of devices) {
      first = Math.min(first, each.first);
      last = Math.max(last, each.clock);
      if (each.clock - each.first > cost) [cost, work] = [each.clock - each.first, each.busy];
    }
    return {
      start, end, cost, work, first, makespan: last - first, bubble_rate: (cost - work) / cost,
      devices: devices.map(each => ({
        first_start: each.first, last_end: each.clock, busy: each.busy, peak_activation: each.peak,
        peak_in_flight: each.peakInFlight,
      })),
      critical: this.criticalPath(),
    };
  }
}

// ---- why an order cannot run ----

const provides = (part, {kind, vs, unit}) =>
  part.vs === vs && part.unit === unit && (kind === 'B' ? isBackward(part.kind) : part.kind === kind);

class Deadlock {
  constructor({model, order, devices}) {
    Object.assign(this, {model, order, position: devices.map(({at}) => at)});
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
    return wanted.find(each => !this.ran(each)) ?? null;
  }

  // Each stuck device waits for a pass that stands behind the one where its own device is stuck:
  // following that from any of them comes round. {text, passes: [[device, place]]}.
  cycle() {
    const seen = [];
    let device = this.position.findIndex((at, d) => at < this.order[d].length);
    while (!seen.some(each => each.device === device)) {
      const stuck = this.order[device][this.position[device]];
      const wanted = stuck.parts.map(part => this.missing(part)).find(each => each);
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
