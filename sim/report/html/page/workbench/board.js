// The passes of one bench over time, a row per device: looked at, taken and moved by pointer, finger or keys.

const kAxis = 22;
const kNear = 5;  // pixels that a pointer may stray without dragging

class Board {
  constructor(bench, canvas) {
    this.bench = bench;
    this.canvas = canvas;
    this.plot = new Plot(canvas, 200, (...to) => this.draw(...to));
    this.drag = null;
    state.on('view', () => this.plot.draw());
    this.listenToPointer();
    canvas.addEventListener('keydown', event => this.onKey(event));
    canvas.addEventListener('blur', () => tip.hide());
  }

  layOut() {
    const devices = this.bench.state.order.length;
    this.row = Math.max(12, Math.min(30, Math.floor(520 / devices)));
    const narrow = this.canvas.clientWidth < 480;
    this.names = narrow ? '' : 'device ';
    this.left = 10 + 7 * `${this.names}${devices - 1}`.length;
    this.right = narrow ? 62 : 78;  // peaks stand behind it
    const lane = this.bench.shown.result.beside.length > 0 && this.row >= 14;
    this.high = this.row - 1 - (lane ? Math.round(this.row / 5) : 0);  // of a pass
    this.plot.setHeight(devices * this.row + kAxis);
  }

  get wide() { return Math.max(this.plot.width - this.left - this.right, 1); }
  xOf(time) { return this.left + ((time - this.first) / view.seconds - view.from) / (view.to - view.from) * this.wide; }
  shareAt(x) { return view.from + (x - this.left) / this.wide * (view.to - view.from); }
  timeAt(x) { return this.first + this.shareAt(x) * view.seconds; }
  get first() { return this.bench.shown.result.first; }

  // ---- drawing ----

  draw(context, width) {
    this.layOut();
    const {order} = this.bench.shown.state;
    context.fillStyle = colours.bar;
    context.fillRect(this.left, 0, this.wide, order.length * this.row);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.wide, order.length * this.row);
    context.clip();
    order.forEach((passes, device) => this.drawDevice(context, passes, device));
    this.drawBeside(context, order.length);
    if (byId('critical').checked) this.drawCritical(context);
    this.drawMarks(context);
    context.restore();
    this.drawNames(context, width);
    this.drawAxis(context, order.length * this.row);
  }

  box(device, at) {
    const {start, end} = this.bench.shown.result;
    const x = this.xOf(start[device][at]);
    return [x, device * this.row, Math.max(this.xOf(end[device][at]) - x, 1), this.high];
  }

  drawDevice(context, passes, device) {
    context.fillStyle = colours.panel;
    context.fillRect(this.left, (device + 1) * this.row - 1, this.wide, 1);
    passes.forEach((pass, at) => {
      const [x, y, wide, high] = this.box(device, at);
      if (x > this.left + this.wide || x + wide < this.left) return;
      pass.parts.forEach((part, i) => {
        const {fill, ink} = this.bench.shade(part);
        const share = high / pass.parts.length;
        context.fillStyle = fill;
        context.fillRect(x, y + i * share, Math.max(wide - (wide > 4 ? 1 : 0), 0.5), share);
        const texts = isVocabulary(part.kind) ? [`${part.kind}${part.unit}`, part.kind] : [String(part.unit)];
        const text = texts.find(each => wide >= each.length * 7 + 2);
        if (share < 11 || text === undefined) return;
        context.fillStyle = ink;
        context.textAlign = 'center';
        context.fillText(text, x + wide / 2, y + (i + 0.5) * share + 0.5);
      });
    });
  }

  // Copies in a lane under the passes of their device, collectives of the vocabulary under those of all.
  drawBeside(context, devices) {
    if (this.high > this.row - 2) return;
    for (const {kind, device, start, end} of this.bench.shown.result.beside) {
      const x = this.xOf(start), wide = Math.max(this.xOf(end) - x - 0.5, 0.5);
      if (end === start || x > this.left + this.wide || x + wide < this.left) continue;
      context.fillStyle = kBeside[kind];
      for (let d = device ?? 0; d < (device === null ? devices : device + 1); ++d) {
        context.fillRect(x, d * this.row + this.high + 1, wide, this.row - this.high - 2);
      }
    }
  }

  // A bar under each pass of the path, and lines where it goes to another device.
  drawCritical(context) {
    const thick = Math.max(2, Math.min(4, this.row / 6));
    const bars = newPath(context), lines = newPath(context);
    let last = null;
    for (const [device, at] of this.bench.shown.result.critical) {
      const [x, y, wide, high] = this.box(device, at);
      const foot = y + high - thick;
      if (last) {
        lines.moveTo(...last);
        lines.lineTo(x, foot + thick / 2);
      }
      last = [x + wide, foot + thick / 2];
      bars.rect(x, foot, wide, thick);
    }
    strokeCritical(context, lines, bars);
  }

  // The taken pass; those that wait for each other; where a pass that cannot be there is held.
  drawMarks(context) {
    const outline = (box, colour, dash = []) => {
      context.setLineDash(dash);
      context.strokeStyle = colours.panel;
      context.lineWidth = 4;
      context.strokeRect(...box);
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(...box);
      context.setLineDash([]);
    };
    const inset = ([x, y, wide, high]) => [x + 1, y + 1, Math.max(wide - 3, 1), high - 2];
    for (const text of this.bench.faulty) {
      const place = whereIs(this.bench.shown.state.order, text);
      if (place) outline(inset(this.box(place.device, place.at)), colours.critical, [4, 2]);
    }
    const place = this.bench.place();
    if (place) outline(inset(this.box(place.device, place.at)), colours.ink);
    if (this.drag?.moving && this.bench.faulty.length > 0) {
      outline([this.drag.x - this.drag.grip, this.drag.device * this.row + 1, this.drag.wide - 3, this.high - 2], colours.critical, [2, 2]);
    }
  }

  drawNames(context, width) {
    const {result} = this.bench.shown;
    result.devices.forEach((device, d) => {
      const over = this.bench.isOver(device);
      const y = (d + 0.5) * this.row;
      context.textAlign = 'right';
      context.fillStyle = d === this.bench.place()?.device ? colours.accent : colours.quiet;
      context.fillText(`${this.names}${d}`, this.left - 6, y);
      context.textAlign = 'left';
      context.fillStyle = over ? colours.critical : colours.quiet;
      context.fillText(this.bench.peakText(device) + (over ? ' !' : ''), width - this.right + 6, y);
    });
  }

  drawAxis(context, y) {
    context.textAlign = 'center';
    context.fillStyle = colours.quiet;
    for (const [time, text] of ticksOf(view.from * view.seconds, view.to * view.seconds, 'seconds', this.wide / 90)) {
      const x = this.xOf(this.first + time);
      context.fillRect(x, y, 1, 4);
      context.fillText(text, Math.min(Math.max(x, this.left + 16), this.left + this.wide - 16), y + 13);
    }
    context.textAlign = 'left';
    context.fillText(this.bench.peakName(), this.left + this.wide + 6, y + 13);
  }

  // ---- pointer and finger ----

  placeAt(x, y) {
    const {state: {order}, result: {start, end}} = this.bench.shown;
    const device = Math.floor(y / this.row);
    if (x < this.left || x > this.left + this.wide || device < 0 || device >= order.length) return null;
    const time = this.timeAt(x);
    const at = upperBound(start[device], time) - 1;
    return {device, at: at >= 0 && time <= end[device][at] ? at : -1, time, under: y - device * this.row > this.high};
  }

  listenToPointer() {
    const {canvas} = this;
    const point = event => {
      const rect = canvas.getBoundingClientRect();
      return [event.clientX - rect.left, event.clientY - rect.top];
    };
    canvas.addEventListener('pointerdown', event => {
      if (event.button > 0) return;
      const [x, y] = point(event);
      const place = this.placeAt(x, y);
      tip.hide();
      this.bench.take(place && place.at >= 0 ? place : null);
      const box = place && place.at >= 0 ? this.box(place.device, place.at) : null;
      this.drag = {begin: [x, y], from: view.from, place: box ? place : null, grip: box ? x - box[0] : 0, wide: box?.[2] ?? 0, moving: false};
      canvas.setPointerCapture?.(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      const [x, y] = point(event);
      if (this.drag) return this.dragTo(x, y);
      const place = this.placeAt(x, y);
      if (place) tip.show((place.under && this.bench.besideText(place)) || this.bench.textOf(place), event.clientX, event.clientY);
      else tip.hide();
    });
    canvas.addEventListener('pointerup', () => this.drop());
    canvas.addEventListener('pointercancel', () => this.cancel());
    canvas.addEventListener('pointerleave', () => tip.hide());
    canvas.addEventListener('wheel', event => {
      const span = view.to - view.from, across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) view.zoom(1.002 ** event.deltaY, this.shareAt(point(event)[0]));
      else if (across !== 0 && span < 1) view.move(view.from + across / 1000 * span);
      else return;
      event.preventDefault();
    }, {passive: false});
  }

  dragTo(x, y) {
    const {drag} = this;
    if (!drag.moving && Math.hypot(x - drag.begin[0], y - drag.begin[1]) < kNear) return;
    drag.moving = true;
    if (!drag.place) return view.move(drag.from - (x - drag.begin[0]) / this.wide * (view.to - view.from));
    const device = Math.max(0, Math.min(Math.floor(y / this.row), this.bench.state.order.length - 1));
    Object.assign(drag, {x, device});
    if (device !== drag.place.device) this.bench.tryDevice(drag.place, device);
    else this.bench.tryPlace(drag.place, this.slotAt(drag.place, this.timeAt(x - drag.grip + drag.wide / 2)));
    this.plot.draw();
  }

  // The place of a pass held with its middle at a time, among the others of its device.
  slotAt({device, at}, time) {
    const {start, end} = this.bench.result;
    let slot = 0;
    for (let i = 0; i < start[device].length; ++i) {
      if (i !== at && (start[device][i] + end[device][i]) / 2 < time) ++slot;
    }
    return slot;
  }

  drop() {
    const {drag} = this;
    this.drag = null;
    if (drag?.moving && drag.place) this.bench.keep();
    this.plot.draw();
  }
  cancel() {
    this.drag = null;
    this.bench.letGo();
  }

  // ---- keys ----

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {bench} = this;
    const middle = (view.from + view.to) / 2;
    const actions = event.shiftKey
      ? {ArrowLeft: () => bench.shift(-1), ArrowRight: () => bench.shift(1), ArrowUp: () => bench.shiftDevice(-1), ArrowDown: () => bench.shiftDevice(1),
        '+': () => view.zoom(0.5, middle)}
      : {ArrowLeft: () => bench.walk(-1), ArrowRight: () => bench.walk(1), ArrowUp: () => bench.walkDevice(-1), ArrowDown: () => bench.walkDevice(1),
        j: () => bench.changeBlock(), Home: () => bench.walk(-Infinity), End: () => bench.walk(Infinity), Escape: () => this.cancel(),
        '+': () => view.zoom(0.5, middle), '=': () => view.zoom(0.5, middle), '-': () => view.zoom(2, middle), 0: () => view.move(0, 1)};
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
    this.showTaken();
  }

  // Scrolls the pass that the keys reach into view.
  showTaken() {
    const place = this.bench.place();
    if (!place) return;
    const {start, end} = this.bench.result;
    const from = (start[place.device][place.at] - this.first) / view.seconds;
    const to = (end[place.device][place.at] - this.first) / view.seconds;
    const span = view.to - view.from;
    if (from < view.from) view.move(from - span / 10);
    else if (to > view.to) view.move(to - span * 0.9);
    this.plot.draw();
  }
}

// The first of a sorted array that is greater than `value`.
function upperBound(array, value) {
  let from = 0, to = array.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (array[middle] > value) to = middle;
    else from = middle + 1;
  }
  return from;
}
