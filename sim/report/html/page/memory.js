// Memory over time: the device that is looked at in full, by category, the others as lines.

const kCategories = [['weights', '#3d5a80'], ['gradients', '#98c1d9'], ['optimizer', '#5b2a7c'], ['vocabulary', '#d3b6e6'],
  ['buffers', '#8a5a00'], ['overhead', '#d8d8d8']];
const kActivations = '#e8a33d';

class MemoryPlot {
  constructor(timeline) {
    this.timeline = timeline;
    this.plot = new Plot(byId('memory'), 190, (...to) => this.draw(...to));
    view.listeners.push(() => this.plot.draw());
    state.on('row', () => this.open());
    this.listen();
    this.open();
  }

  open() {
    const memory = view.data?.memory;
    byId('memory-part').hidden = !memory;
    if (!memory) return;
    const {result, run} = results[state.row];
    // A device's constant bytes, below its activations: [[category, bytes, colour]].
    this.held = result.devices.map(({peak_memory_by_category: by}) =>
      kCategories.filter(([name]) => by[name] > 0).map(([name, fill]) => [name, by[name], fill]));
    this.base = this.held.map(parts => parts.reduce((sum, [, size]) => sum + size, 0));
    this.capacity = run.document.scenario?.memory?.capacity_bytes ?? null;
    this.most = 0;
    for (let device = 0; device < view.data.devices; ++device) {
      for (let i = memory.first[device]; i < memory.first[device + 1]; ++i) {
        this.most = Math.max(this.most, (this.base[device] ?? 0) + memory.bytes[i]);
      }
    }
    this.plot.title = `Memory over time of ${nameOfRow(state.row)}`;
    const names = new Set(this.held.flat().map(([name]) => name));
    legend('memory-legend', [[kActivations, 'activations'],
      ...kCategories.filter(([name]) => names.has(name)).map(([name, fill]) => [fill, name]),
      ['var(--quiet)', 'other devices (lines)']]);
    this.plot.draw();
  }

  // Calls `visit(x, level)` at every change in sight; of many at one pixel only the highest.
  walk(device, visit) {
    const {first, at, bytes: level} = view.data.memory;
    const begin = first[device], end = first[device + 1];
    const from = upperBound(at, view.from * kWhole, begin, end);
    const to = upperBound(at, view.to * kWhole, begin, end);
    let pixel = this.timeline.left, high = from > begin ? level[from - 1] : 0, last = high;
    for (let i = from; i < to; ++i) {
      const x = this.timeline.xOf(at[i]);
      if (x - pixel >= 1) {
        visit(pixel, high);
        if (high !== last && x - pixel >= 2) visit(pixel + 1, last);
        [pixel, high] = [x, level[i]];
      }
      high = Math.max(high, level[i]);
      last = level[i];
    }
    visit(pixel, high);
    visit(pixel, last);
  }

  yOf(size) { return this.box - size / this.top * (this.box - 8); }

  // A line of steps from left to right; with `closed` down to `base` again.
  trace(context, device, base, closed) {
    context.beginPath();
    let y = null;
    if (closed) context.moveTo(this.timeline.left, this.yOf(base));
    this.walk(device, (x, level) => {
      const next = this.yOf(base + level);
      if (y === null && !closed) context.moveTo(x, next);
      else if (y !== null) context.lineTo(x, y);
      context.lineTo(x, next);
      y = next;
    });
    context.lineTo(this.plot.width, y);
    if (closed) context.lineTo(this.plot.width, this.yOf(base));
  }

  draw(context, width, height) {
    const data = view.data;
    if (!data?.memory) return;
    this.box = height - kAxis;
    this.top = Math.max(this.most, this.capacity !== null && this.capacity < 1.6 * this.most ? this.capacity : 0, 1) * 1.04;
    this.drawLevels(context, width);
    context.save();
    context.beginPath();
    context.rect(this.timeline.left, 0, width - this.timeline.left, this.box + 1);
    context.clip();
    let base = 0;
    for (const [, size, fill] of this.held[view.device] ?? []) {
      context.fillStyle = fill;
      context.fillRect(this.timeline.left, this.yOf(base + size), width, this.yOf(base) - this.yOf(base + size));
      base += size;
    }
    this.trace(context, view.device, base, true);
    context.fillStyle = kActivations;
    context.fill();
    const every = Math.ceil(data.devices / 24);
    context.strokeStyle = colours.ink;
    context.globalAlpha = 0.4;
    for (let device = 0; device < data.devices; device += every) {
      if (device === view.device) continue;
      this.trace(context, device, this.base[device] ?? 0, false);
      context.lineWidth = 0.8;
      context.stroke();
    }
    context.globalAlpha = 1;
    this.trace(context, view.device, base, false);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.stroke();
    this.drawCapacity(context, width);
    context.restore();
    drawTimeAxis(context, data, this.timeline.left, width, this.box);
    this.note();
  }

  drawLevels(context, width) {
    context.textAlign = 'right';
    for (const [value, text] of ticksOf(0, this.top, 'bytes', 5)) {
      context.fillStyle = colours.grid;
      context.fillRect(this.timeline.left, Math.round(this.yOf(value)), width, 1);
      context.fillStyle = colours.quiet;
      context.fillText(text, this.timeline.left - 6, Math.max(this.yOf(value), 6));
    }
  }

  drawCapacity(context, width) {
    if (this.capacity === null || this.capacity > this.top) return;
    const y = this.yOf(this.capacity);
    context.fillStyle = colours.critical;
    context.fillRect(this.timeline.left, y - 1, width, 2);
    context.textAlign = 'right';
    context.fillText(`capacity ${bytes(this.capacity)}`, width - 6, y + 9);
  }

  note() {
    const device = results[state.row].result.devices[view.device];
    if (!device) return;
    const peak = device.peak_memory_bytes ?? device.peak_activation_bytes;
    const text = `device ${view.device}: peak ${bytes(peak)} with ${device.peak_activation_pass ?? ''}`;
    if (byId('memory-note').textContent !== text) byId('memory-note').textContent = text;
  }

  listen() {
    const canvas = this.plot.canvas;
    canvas.addEventListener('pointermove', event => {
      const data = view.data;
      const rect = canvas.getBoundingClientRect();
      const time = this.timeline.timeAt(event.clientX - rect.left);
      if (time < view.from || time > view.to) return tip.hide();
      const {first, at, bytes: level} = data.memory;
      const i = upperBound(at, time * kWhole, first[view.device], first[view.device + 1]) - 1;
      const now = i >= first[view.device] ? level[i] : 0;
      const base = this.base[view.device] ?? 0;
      tip.show(`device ${view.device} at ${seconds(time * data.seconds)}\nactivations ${bytes(now)}` +
        (base > 0 ? `\nwith all else ${bytes(base + now)}` : ''), event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerleave', () => tip.hide());
  }
}

function startMemory(timeline) {
  if (timeline) new MemoryPlot(timeline);
}
