// Copies to the host and back (sim/execution/copy_walk.h). A link carries one at a time in each direction, as planned.
// {ratio, ordered, links: [{out: [[F, factor]], back: [[F, factor, pass that it follows]]}], gates:
// {pass: [link, number of the copy out whose room it needs]}}. Passes are named by their text, so that copies stay with
// a pass that is moved.
class Copies {
  constructor(walk) {
    const {copies, device_of} = walk.model;
    this.walk = walk;
    this.of = new Map();     // by stage and unit: {out, back}
    this.after = new Map();  // by text of a pass: the copies back that follow it
    this.links = copies.links.map(link => [link.out, link.back].map((all, back) => ({last: kNotYet, next: 0, all: all.map(([of, factor, after], number) => {
      const [vs, unit] = of.split('F').map(Number);
      const copy = {of, vs, unit, number, factor, back: back === 1, after: after ?? null, device: device_of[vs], waits: kNotYet, node: kNotYet};
      this.note(copy);
      return copy;
    })})));
    this.gates = new Map(Object.entries(copies.gates).map(([pass, [link, out]]) => [pass, this.links[link][0].all[out]]));
    this.linkOf = [];  // by device
    this.links.forEach((directions, link) => directions[0].all.forEach(({device}) => { this.linkOf[device] = link; }));
    this.changes = walk.order.map(() => []);  // by device: [time, bytes]
  }

  note(copy) {
    const both = this.pair(copy) ?? {out: null, back: null};
    both[copy.back ? 'back' : 'out'] = copy;
    this.of.set(copy.vs * this.walk.units + copy.unit, both);
    if (copy.after === null) return;
    if (!this.after.has(copy.after)) this.after.set(copy.after, []);
    this.after.get(copy.after).push(copy);
  }

  pair({vs, unit}) { return this.of.get(vs * this.walk.units + unit); }

  // The copies that a pass waits for: one out whose room it needs, and the one back of what it uses.
  awaited(pass) {
    const found = [], add = copy => { if (copy) found.push(copy); };
    for (const part of pass.parts) add(this.gates.get(partText(part)));
    for (const part of pass.parts) {
      const uses = part.kind === 'R' || (isBackward(part.kind) && !this.walk.recomputes[part.vs]);
      if (uses) add(this.pair(part)?.back);
    }
    return found;
  }

  // A pass has run: copies that wait for it go, and those behind them.
  ran(device, pass, node) {
    for (const part of pass.parts) {
      const made = part.kind === 'F' ? this.pair(part) : null;
      if (made) made.out.waits = node;
      for (const copy of this.after.get(partText(part)) ?? []) copy.waits = node;
    }
    if (this.linkOf[device] === undefined) return;
    for (const direction of this.links[this.linkOf[device]]) {
      while (direction.next < direction.all.length && this.go(direction, direction.all[direction.next], device)) ++direction.next;
    }
  }

  go(direction, copy, device) {
    const first = copy.back ? this.pair(copy).out.node : copy.waits;
    const second = copy.after === null ? first : copy.waits;
    if (first === kNotYet || second === kNotYet) return false;
    const {walk} = this;
    const seconds = walk.takes.copy(copy);
    if (copy.device !== device) walk.wake(copy.device);
    copy.node = direction.last = walk.add(seconds, [direction.last, first, second],
      {kind: copy.back ? 'copy in' : 'copy out', device: copy.device, of: copy.of});
    const bytes = this.bytes(copy);
    this.changes[copy.device].push(copy.back ? [walk.start[copy.node], bytes] : [walk.end[copy.node], -bytes]);
    return true;
  }

  bytes({vs, unit}) {
    const {model, recomputes} = this.walk;
    return model.copies.ratio * passBytes(model, recomputes, {kind: 'F', vs, unit})[0];
  }

  // The largest sum of a device's bytes over time. At equal times releases come first.
  peak(device) {
    let held = 0, peak = 0;
    for (const [, bytes] of this.changes[device].sort((a, b) => a[0] - b[0] || a[1] - b[1])) peak = Math.max(peak, held += bytes);
    return peak;
  }

  // The same in the order of passes (peaks_by_order, sim/execution/published_offload.h). Bytes go where a pass waits for
  // the copy out, and return behind the pass that the copy back follows.
  orderedPeak(device) {
    const {model, order, recomputes} = this.walk;
    const back = pass => pass.parts.flatMap(part => this.after.get(partText(part)) ?? []);
    const link = this.linkOf[device] === undefined ? [{all: []}, {all: []}] : this.links[this.linkOf[device]];
    let next = 0, kept = 0, peak = 0;
    order[device].forEach((pass, at) => {
      let before = 0;
      for (const gate of pass.parts.map(part => this.gates.get(partText(part))).filter(Boolean)) {
        for (; next <= gate.number; ++next) {
          if (link[0].all[next].device === device) before -= this.bytes(link[0].all[next]);
        }
      }
      const returning = at > 0 ? back(order[device][at - 1]) : link[1].all.filter(copy => copy.device === device && copy.after === null);
      for (const copy of returning) before += this.bytes(copy);
      const [acquired, released] = passBytes(model, recomputes, pass);
      kept += before + acquired;
      peak = Math.max(peak, kept);
      kept -= released;
    });
    return peak;
  }

  // Why a pass that has all its inputs cannot run.
  why(pass) {
    const copy = this.awaited(pass).find(({node}) => node === kNotYet);
    const {all, next} = this.links[this.linkOf[copy.device]][copy.back ? 1 : 0];
    const first = all[next];
    const what = ({of, back}) => `the copy ${back ? 'back' : 'out'} of ${of}`;
    const cause = first.back && first.after !== null && first.waits === kNotYet ? first.after : first.of;
    return `${passText(pass)} needs ${what(copy)}${first === copy ? '' : `, which goes behind ${what(first)}`}, which waits for ${cause}`;
  }
}
