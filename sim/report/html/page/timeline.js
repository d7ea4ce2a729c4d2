// Passes over time, a row per device. The charts below share its view of time and its device.

const kAxis = 24;

// The part of a timeline that is in sight, and the device and pass that are looked at.
const view = {
  data: null,  // of the open result, see decoded()
  from: 0, to: 1,
  top: 0,  // rows that are scrolled away
  device: 0, pass: -1,
  listeners: [],
  changed() { for (const listener of this.listeners) listener(); },
  // Keeps the place under `at` (0..1 of the timeline) where it is.
  zoom(factor, at) {
    const span = Math.min(1, Math.max((this.to - this.from) * factor, 1e-7));
    const share = (at - this.from) / (this.to - this.from);
    this.move(at - share * span, span);
  },
  move(from, span = this.to - this.from) {
    this.from = Math.min(Math.max(from, 0), 1 - span);
    this.to = this.from + span;
    this.changed();
  },
};

function microbatchText(data, unit) {
  return `microbatch ${Math.floor(unit / data.splits)}${data.splits > 1 ? `, split ${unit % data.splits}` : ''}`;
}

function passText(data, pass) {
  const device = upperBound(data.first, pass, 0, data.first.length) - 1;
  const part = ({kind, meaning, stage, chunk}, microbatch) => microbatch === kNone ? `${kind} ${meaning}`
    : `${kind} ${meaning}, ${microbatchText(data, microbatch)}, stage ${stage}, chunk ${chunk}`;
  const parts = data.classes[data.ofClass[pass]];
  const lines = parts.map((each, i) => part(each, i === 0 ? data.microbatch[pass] : data.second[pass]));
  const at = fraction => seconds(fraction / kWhole * data.seconds, 6);
  const end = data.start[pass] + data.length[pass];
  return [lines.join('\nbeside '), `device ${device}`, `start ${at(data.start[pass])}, end ${at(end)}`,
    `duration ${at(data.length[pass])}`, ...(data.isCritical[pass] ? ['on the critical path'] : [])].join('\n');
}

// On part `i` of a pass its microbatch, on a step its name, where there is room.
function drawNumber(context, data, pass, i, {kind, ink}, {x, y, wide, high}) {
  const microbatch = i === 0 ? data.microbatch[pass] : data.second[pass];
  const text = microbatch === kNone ? kind : String(microbatch);
  if (high < 11 || wide < text.length * 7 + 3) return;
  context.fillStyle = ink;
  context.textAlign = 'center';
  context.fillText(text, x + wide / 2, y + high / 2 + 0.5);
}

// A task beside the passes: "message to device 3: gradients of microbatch 5, stage 2".
function besideText(data, i) {
  const {classes, ofClass, microbatch, start, length} = data.beside;
  const {kind, of, stage, to} = classes[ofClass[i]];
  const what = kind === 'collective' ? 'collective of all devices'
    : kind === 'vocabulary' ? `collective of the vocabulary: ${of}, ${microbatchText(data, microbatch[i])}`
    : kind === 'message' ? `message to device ${to}: ${of} of ${microbatchText(data, microbatch[i])}, stage ${stage}`
    : `${kind}: ${microbatchText(data, microbatch[i])}, stage ${stage}`;
  return `${what}\nstart ${seconds(start[i] / kWhole * data.seconds, 6)}, duration ${seconds(length[i] / kWhole * data.seconds, 6)}`;
}

// Legend entries of the passes that these timelines have: one per kind, with the colours of its first and last chunk.
function passLegend(timelines) {
  const seen = new Map();
  for (const {kind, meaning, chunk, fill} of timelines.flatMap(data => data?.classes.flat() ?? [])) {
    if (!seen.has(kind)) seen.set(kind, {meaning, first: fill, low: chunk, last: fill, high: chunk});
    const known = seen.get(kind);
    if (chunk < known.low) Object.assign(known, {low: chunk, first: fill});
    if (chunk > known.high) Object.assign(known, {high: chunk, last: fill});
  }
  return [...seen].map(([kind, {meaning, first, last, low, high}]) => [
    high > low ? `linear-gradient(90deg, ${first} 50%, ${last} 50%)` : first,
    `${kind} ${meaning}${high > low ? ` (chunk ${low}, ${high})` : ''}`]);
}

class Timeline {
  constructor() {
    this.plot = new Plot(byId('timeline'), 200, (...to) => this.draw(...to));
    this.drag = null;
    this.left = 0;
    this.listenToPointer();
    this.listenToKeys();
    view.listeners.push(() => this.plot.draw());
    for (const id of ['critical', 'beside']) byId(id).addEventListener('change', () => this.plot.draw());
    const zoom = (id, action) => byId(id).addEventListener('click', action);
    zoom('zoom-in', () => view.zoom(0.5, (view.from + view.to) / 2));
    zoom('zoom-out', () => view.zoom(2, (view.from + view.to) / 2));
    zoom('zoom-fit', () => view.move(0, 1));
    state.on('row', () => this.open());
    this.open();
  }

  open() {
    const timeline = results[state.row]?.timeline ?? null;
    const data = decoded(timeline);
    // Another schedule of the same run is compared in the same view.
    const fresh = !view.data || !data || view.data.devices !== data.devices;
    Object.assign(view, {data, pass: -1}, fresh ? {from: 0, to: 1, top: 0, device: 0} : {});
    byId('timeline').parentElement.hidden = !data;
    byId('timeline-hint').hidden = !data;
    for (const control of document.querySelectorAll('#timeline-part label, #timeline-part .buttons')) control.hidden = !data;
    byId('beside').parentElement.hidden = !data?.beside;
    if (data) this.layOut(data);
    byId('timeline-note').textContent = this.note(timeline, data);
    this.fillLegend(data);
    view.changed();
  }

  note(timeline, data) {
    const number = count => count.toLocaleString('en-US');
    if (!data) {
      if (report.run) return report.plan.rows[state.row].reason ?? 'this row is being run';
      return timeline?.left_out === undefined ? 'a document of results has no timeline: report its scenario instead'
        : `left out: ${number(timeline.left_out)} passes are too many for one page; 'pipesim run --trace' is for them`;
    }
    const hidden = this.rows < data.devices ? `; ${this.rows} devices in sight, drag for the others` : '';
    const dense = data.passes / data.devices > 1500 ? '; until one zooms in, a pixel has the mean colour of its passes' : '';
    return `${number(data.passes)} passes on ${counted(data.devices, 'device')} in ${seconds(data.seconds)}${hidden}${dense}`;
  }

  layOut(data) {
    this.left = 8 + 7 * `device ${data.devices - 1}`.length;  // names stand before it
    this.row = Math.max(4, Math.min(26, Math.floor(560 / data.devices)));
    this.rows = Math.min(data.devices, Math.floor(560 / this.row));
    this.plot.setHeight(this.rows * this.row + kAxis);
    byId('timeline').setAttribute('aria-label',
      `Timeline of ${nameOfRow(state.row)}: ${counted(data.devices, 'device')}, ${seconds(data.seconds)}`);
  }

  fillLegend(data) {
    legend('timeline-legend', [...passLegend([data]),
      ...unique((data?.beside?.classes ?? []).map(({kind}) => kind)).map(kind => [kBeside[kind], kind]),
      ...(data ? [['var(--critical)', 'critical path']] : [])]);
  }

  xOf(fraction) {
    return this.left + (fraction / kWhole - view.from) / (view.to - view.from) * (this.plot.width - this.left);
  }
  get pixelsPerTick() { return (this.plot.width - this.left) / kWhole / (view.to - view.from); }
  timeAt(x) { return view.from + (x - this.left) / (this.plot.width - this.left) * (view.to - view.from); }

  draw(context, width) {
    const data = view.data;
    if (!data) return;
    context.fillStyle = colours.bar;
    context.fillRect(this.left, 0, width - this.left, this.rows * this.row);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left, this.rows * this.row);
    context.clip();
    const beside = data.beside !== null && byId('beside').checked;
    this.high = this.row - 1 - (beside && this.row >= 14 ? Math.round(this.row / 5) : 0);  // of a pass
    for (let i = 0; i < this.rows; ++i) {
      this.drawDevice(context, data, view.top + i, i * this.row, width);
      if (beside) this.drawBeside(context, data.beside, view.top + i, i * this.row);
    }
    if (byId('critical').checked) this.drawCritical(context, data);
    if (view.pass >= 0) this.drawFocus(context, data);
    context.restore();
    this.drawNames(context);
    drawTimeAxis(context, data, this.left, width, this.rows * this.row);
  }

  drawDevice(context, data, device, y, width) {
    const begin = data.first[device], end = data.first[device + 1];
    const from = Math.max(begin, upperBound(data.start, view.from * kWhole, begin, end) - 1);
    const to = upperBound(data.start, view.to * kWhole, begin, end);
    context.fillStyle = colours.panel;
    context.fillRect(this.left, y + this.row - 1, width, 1);
    if (to - from > 1.5 * (width - this.left)) return this.drawColumns(context, data, from, to, y, width);
    for (let pass = from; pass < to; ++pass) this.drawPass(context, data, pass, y);
  }

  drawPass(context, data, pass, y) {
    const x = this.xOf(data.start[pass]), wide = this.xOf(data.start[pass] + data.length[pass]) - x;
    const parts = data.classes[data.ofClass[pass]];
    const high = this.high / parts.length;
    parts.forEach((part, i) => {
      context.fillStyle = part.fill;
      context.fillRect(x, y + i * high, Math.max(wide - (wide > 4 ? 1 : 0), 0.5), high);
      drawNumber(context, data, pass, i, part, {x, y: y + i * high, wide, high});
    });
  }

  // Draws messages and copies in a lane under the passes. A collective, which all devices wait for, fills the row.
  drawBeside(context, {classes, first, start, length, ofClass}, device, y) {
    const low = view.from * kWhole, high = view.to * kWhole;
    let drawn = -1;  // pixel up to which the lane is drawn: tasks that end before it are skipped
    for (let i = first[device]; i < first[device + 1] && start[i] <= high; ++i) {
      if (start[i] + length[i] < low) continue;
      const {kind} = classes[ofClass[i]], all = kind === 'collective';
      const x = this.xOf(start[i]), end = this.xOf(start[i] + length[i]);
      if (!all && (this.high > this.row - 2 || end < drawn)) continue;
      drawn = Math.max(x + 0.5, end);
      context.fillStyle = kBeside[kind];
      if (all) context.fillRect(x, y, Math.max(end - x, 0.5), this.row - 1);
      else context.fillRect(x, y + this.high + 1, Math.max(end - x - 0.5, 0.5), this.row - this.high - 2);
    }
  }

  // With more passes than pixels: each pixel has the mean colour of what it covers, neighbours of one
  // colour as one stroke. Picking a pass for each pixel would show patterns that are not there.
  drawColumns(context, data, from, to, y, width) {
    const pixels = Math.ceil(width - this.left);
    const sum = new Float32Array(4 * pixels);  // red, green, blue, and how much is covered
    for (let pass = from; pass < to; ++pass) {
      const [red, green, blue] = data.rgb[data.ofClass[pass]];
      const begin = this.xOf(data.start[pass]) - this.left, end = begin + data.length[pass] * this.pixelsPerTick;
      for (let x = Math.max(0, Math.floor(begin)); x < Math.min(pixels, end); ++x) {
        const part = Math.min(end, x + 1) - Math.max(begin, x);
        sum[4 * x] += part * red;
        sum[4 * x + 1] += part * green;
        sum[4 * x + 2] += part * blue;
        sum[4 * x + 3] += part;
      }
    }
    const free = rgbOf(colours.bar);
    const channel = (x, i) => Math.min(252, sum[4 * x + i] + Math.max(0, 1 - sum[4 * x + 3]) * free[i]) & 252;
    const colourAt = x => channel(x, 0) << 16 | channel(x, 1) << 8 | channel(x, 2);
    for (let x = 0; x < pixels;) {
      const since = x, colour = colourAt(x);
      do ++x; while (x < pixels && colourAt(x) === colour);
      context.fillStyle = '#' + colour.toString(16).padStart(6, '0');
      context.fillRect(this.left + since, y, x - since, this.high);
    }
  }

  // A bar under each pass of the path, and lines where it goes to another device; both with an
  // edge, to be seen on any pass.
  drawCritical(context, data) {
    const thick = Math.max(2, Math.min(4, this.row / 5));
    const low = view.from * kWhole, high = view.to * kWhole;
    const yOf = pass => (upperBound(data.first, pass, 0, data.first.length) - 1 - view.top) * this.row + this.high - 1 - thick / 2;
    const bars = newPath(context), lines = newPath(context);
    let last = -1;
    for (const pass of data.critical) {
      const begin = data.start[pass], end = begin + data.length[pass];
      if (last >= 0 && begin >= low && data.start[last] <= high) {
        lines.moveTo(this.xOf(data.start[last] + data.length[last]), yOf(last));
        lines.lineTo(this.xOf(begin), yOf(pass));
      }
      last = pass;
      if (end < low || begin > high) continue;
      bars.rect(this.xOf(begin), yOf(pass) - thick / 2, Math.max(this.xOf(end) - this.xOf(begin), 0.75), thick);
    }
    strokeCritical(context, lines, bars);
  }

  drawFocus(context, data) {
    const device = upperBound(data.first, view.pass, 0, data.first.length) - 1;
    const x = this.xOf(data.start[view.pass]), wide = this.xOf(data.start[view.pass] + data.length[view.pass]) - x;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(x - 1, (device - view.top) * this.row, Math.max(wide, 2) + 1, this.high);
  }

  drawNames(context) {
    const every = Math.ceil(12 / this.row);
    context.textAlign = 'right';
    for (let i = 0; i < this.rows; ++i) {
      const device = view.top + i;
      if (device % every !== 0) continue;
      context.fillStyle = device === view.device ? colours.accent : colours.quiet;
      context.fillText(`device ${device}`, this.left - 6, Math.max((i + 0.5) * this.row, 6));
    }
  }

  deviceAt(y) { return Math.max(view.top, Math.min(view.top + Math.floor(y / this.row), view.top + this.rows - 1)); }

  // The tasks beside the passes that run at a time, three at most.
  besideAt(device, time) {
    const {first, start, length} = view.data.beside, at = time * kWhole, found = [];
    for (let i = first[device]; i < first[device + 1] && start[i] <= at && found.length < 3; ++i) {
      if (at <= start[i] + length[i]) found.push(besideText(view.data, i));
    }
    return found.join('\n');
  }

  look(device, time, under = false) {
    const data = view.data;
    const begin = data.first[device], end = data.first[device + 1];
    const at = time * kWhole;
    const pass = upperBound(data.start, at, begin, end) - 1;
    const beside = data.beside && byId('beside').checked ? this.besideAt(device, time) : '';
    if (under && beside) return beside;
    const inside = pass >= begin && at <= data.start[pass] + data.length[pass];
    view.device = device;
    view.pass = inside ? pass : -1;
    view.changed();
    if (inside) return passText(data, pass);
    const since = pass >= begin ? data.start[pass] + data.length[pass] : 0;
    const until = pass + 1 < end ? data.start[pass + 1] : kWhole;
    return [`device ${device} idle\n${seconds((until - since) / kWhole * data.seconds)}`, beside].filter(Boolean).join('\n');
  }

  listenToPointer() {
    const canvas = this.plot.canvas;
    const place = event => {
      const rect = canvas.getBoundingClientRect();
      return [event.clientX - rect.left, event.clientY - rect.top];
    };
    canvas.addEventListener('pointerdown', event => {
      const [x, y] = place(event);
      this.drag = {x, y, from: view.from, top: view.top};
      canvas.setPointerCapture(event.pointerId);
      tip.hide();
    });
    canvas.addEventListener('pointermove', event => {
      const [x, y] = place(event);
      if (this.drag && event.buttons > 0) return this.dragTo(x, y);
      if (x < this.left || y > this.rows * this.row) return tip.hide();
      const device = this.deviceAt(y), under = y - (device - view.top) * this.row > this.high;
      tip.show(this.look(device, this.timeAt(x), under), event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerup', () => { this.drag = null; });
    canvas.addEventListener('pointerleave', () => tip.hide());
    canvas.addEventListener('dblclick', event => view.zoom(0.5, this.timeAt(place(event)[0])));
    canvas.addEventListener('wheel', event => {
      const span = view.to - view.from;
      const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) view.zoom(1.002 ** event.deltaY, this.timeAt(place(event)[0]));
      else if (Math.abs(across) > 0 && span < 1) view.move(view.from + across / 1000 * span);
      else return;
      event.preventDefault();
      tip.hide();
    }, {passive: false});
  }

  dragTo(x, y) {
    view.top = Math.max(0, Math.min(this.drag.top + Math.round((this.drag.y - y) / this.row), view.data.devices - this.rows));
    view.move(this.drag.from - (x - this.drag.x) / (this.plot.width - this.left) * (view.to - view.from));
  }

  // Arrows walk over passes; what is looked at stays in sight, and is read out.
  listenToKeys() {
    const canvas = this.plot.canvas;
    canvas.addEventListener('blur', () => tip.hide());
    canvas.addEventListener('keydown', event => {
      const data = view.data;
      if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
      const middle = view.pass < 0 ? (view.from + view.to) / 2
        : (data.start[view.pass] + data.length[view.pass] / 2) / kWhole;
      const walk = step => this.goTo(Math.max(data.first[view.device],
        Math.min((view.pass >= 0 ? view.pass : this.near(view.device, middle)) + step, data.first[view.device + 1] - 1)));
      const change = step => {
        view.device = Math.max(0, Math.min(view.device + step, data.devices - 1));
        this.goTo(this.near(view.device, middle));
      };
      const actions = {
        ArrowRight: () => walk(1), ArrowLeft: () => walk(-1), ArrowDown: () => change(1), ArrowUp: () => change(-1),
        Home: () => this.goTo(data.first[view.device]), End: () => this.goTo(data.first[view.device + 1] - 1),
        '+': () => view.zoom(0.5, middle), '=': () => view.zoom(0.5, middle), '-': () => view.zoom(2, middle),
        0: () => view.move(0, 1),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  near(device, time) {
    const begin = view.data.first[device], end = view.data.first[device + 1];
    return Math.max(begin, Math.min(upperBound(view.data.start, time * kWhole, begin, end) - 1, end - 1));
  }

  goTo(pass) {
    const data = view.data, span = view.to - view.from;
    view.pass = pass;
    const begin = data.start[pass] / kWhole, end = (data.start[pass] + data.length[pass]) / kWhole;
    view.top = Math.max(Math.min(view.top, view.device), view.device - this.rows + 1);
    if (begin < view.from || end > view.to) view.move((begin + end - span) / 2);
    else view.changed();
    const rect = this.plot.canvas.getBoundingClientRect();
    tip.show(passText(data, pass), rect.left + Math.max(this.left, this.xOf(data.start[pass])),
      rect.top + (view.device - view.top + 1) * this.row);
  }
}

function drawTimeAxis(context, data, left, width, y) {
  const span = (view.to - view.from) * data.seconds;
  context.textAlign = 'center';
  for (const [value, text] of ticksOf(view.from * data.seconds, view.to * data.seconds, 'seconds', (width - left) / 100)) {
    const x = left + (value / data.seconds - view.from) * data.seconds / span * (width - left);
    context.fillStyle = colours.line;
    context.fillRect(Math.round(x), y, 1, 4);
    context.fillStyle = colours.quiet;
    context.fillText(text, Math.min(x, width - 26), y + 14);
  }
}

function startTimeline() {
  if (report.sweep || rowCount === 0) {
    byId('timeline-part').hidden = true;
    return null;
  }
  return new Timeline();
}
