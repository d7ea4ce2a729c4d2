// Why a planned layout takes longer than another: the seconds between them, by part and by cause.

// The parts that a person thinks in, by the causes that `shares` names (sim/layouts/difference.h).
const kParts = [
  ['compute', ['model', 'kernels', 'optimizer', 'fixed']],
  ['communication', ['collectives', 'transfers', 'host_copies', 'reduction', 'contention']],
  ['bubble', ['ramps', 'order', 'imbalance']],
  ['recompute', ['recompute']],
];

// Seconds of a row by cause; messages on shared ways make what an iteration takes beyond replay.
function secondsByCause(row) {
  const {shares, iteration_seconds: iteration} = planned[row].layout;
  const causes = Object.fromEntries(Object.entries(shares).map(([cause, share]) => [cause, share * iteration]));
  return {...causes, contention: expectedSeconds(row) - iteration};
}

// Seconds of `to` less those of `from`: {parts: [{name, seconds, causes: [[cause, seconds]]}], total}.
function differenceOf(from, to) {
  const [a, b] = [secondsByCause(from), secondsByCause(to)];
  const parts = kParts.map(([name, names]) => {
    const causes = names.map(cause => [cause, (b[cause] ?? 0) - (a[cause] ?? 0)]);
    return {name, seconds: causes.reduce((sum, [, value]) => sum + value, 0), causes};
  });
  return {parts, total: parts.reduce((sum, part) => sum + part.seconds, 0)};
}

const sized = (value, kind) => showSure(value, kind, kind === 'seconds' ? 3 : null);
const signed = (value, kind) => (value > 0 ? '+' : value < 0 ? '\u2212' : '') + sized(Math.abs(value), kind);

class Difference {
  constructor() {
    this.from = byId('difference-from');
    this.to = byId('difference-to');
    for (const select of [this.from, this.to]) {
      select.append(...planned.map((each, row) => el('option', {value: String(row)}, nameOfPlanned(each))));
      select.addEventListener('change', () => this.update());
    }
    this.plot = new Plot(byId('difference'), 200, (...to) => this.draw(...to));
    this.plot.canvas.setAttribute('role', 'img');
    this.sides = [new Side('from'), new Side('to')];
    this.listen();
    state.on('row', () => this.open());
    this.open();
  }

  // The two rows, as far as they have been run.
  showSides() {
    const rows = [Number(this.from.value), Number(this.to.value)];
    this.sides.forEach((side, i) => side.open(rows[i]));
    const most = Math.max(...this.sides.map(side => side.seconds));
    for (const side of this.sides) side.show(most);
    sideLegend('sides-legend', this.sides);
  }

  // The open row, against the baseline of its plan.
  open() {
    const other = rowToCompare(state.row);
    this.from.value = String(other >= 0 ? other : planned.findIndex(({plan}) => plan === planned[state.row].plan));
    this.to.value = String(state.row);
    this.update();
  }

  update() {
    const rows = [Number(this.from.value), Number(this.to.value)];
    [this.first, this.last] = rows.map(expectedSeconds);
    this.found = differenceOf(...rows);
    const [a, b] = rows.map(row => planned[row].layout);
    const {total} = this.found;
    const memory = b.peak_memory_bytes - a.peak_memory_bytes;
    const text = Math.abs(total) < 1e-4 * this.first ? 'Both take the same time'
      : `${nameOfRow(rows[1])} takes ${sized(Math.abs(total), 'seconds')} (${fixed(100 * Math.abs(total) / this.first, 1)}%) ` +
        `${total > 0 ? 'more' : 'less'} than ${nameOfRow(rows[0])}`;
    byId('difference-note').textContent = `${text}; memory of the fullest GPU ${signed(memory, 'bytes')}.`;
    this.plot.title = text;
    this.plot.canvas.setAttribute('aria-label', `${text}; the same as a table below`);
    this.plot.setHeight((this.found.parts.length + 2) * 26 + kAxis);
    this.fillTable();
    this.plot.draw();
    this.showSides();
    state.tell('compared');
  }

  fillTable() {
    const lines = this.found.parts.flatMap(part => [[part.name, '', part.seconds],
      ...part.causes.map(([cause, value]) => ['', cause.replaceAll('_', ' '), value])]).concat([['sum', '', this.found.total]]);
    plainTable('difference-table', [{name: 'part', values: lines.map(line => line[0])},
      {name: 'cause', values: lines.map(line => line[1])},
      {name: 'seconds', values: lines.map(line => line[2]), format: value => signed(value, 'seconds')},
      {name: 'of the first', values: lines.map(line => line[2] / this.first), format: value => signed(value, 'share')}], 100);
  }

  // Where each part begins and ends, between the iterations of the two.
  steps() {
    let at = this.first;
    return this.found.parts.map(part => {
      const step = {part, begin: at, end: at + part.seconds};
      at = step.end;
      return step;
    });
  }

  draw(context, width) {
    const high = 26, steps = this.steps();
    const left = 104, right = width - 8;
    const ends = [this.first, this.last, ...steps.map(step => step.end)];
    let [low, top] = [Math.min(...ends), Math.max(...ends)];
    if (!(top - low > 1e-6 * top)) [low, top] = [low * 0.99, top * 1.01];
    // Room at both ends for the numbers: on a phone for the seconds alone.
    const brief = right - left < 440, room = Math.min(0.3, (brief ? 80 : 130) / Math.max(right - left, 1));
    const extra = (top - low) * room / (1 - 2 * room);
    [low, top] = [low - extra, top + extra];
    const x = value => left + (value - low) / (top - low) * (right - left);
    context.textAlign = 'center';
    for (const [value, text] of ticksOf(low, top, 'seconds', (right - left) / 90)) {
      context.fillStyle = colours.grid;
      context.fillRect(Math.round(x(value)), 0, 1, (steps.length + 2) * high);
      context.fillStyle = colours.quiet;
      if (x(value) < right - 20) context.fillText(text, x(value), (steps.length + 2) * high + 12);
    }
    this.drawEnd(context, 'from', this.first, x, 0, high);
    steps.forEach((step, i) => this.drawStep(context, step, x, (i + 1) * high, high, brief));
    this.drawEnd(context, 'to', this.last, x, (steps.length + 1) * high, high);
  }

  drawEnd(context, name, value, x, y, high) {
    context.fillStyle = colours.ink;
    context.fillRect(x(value) - 2, y + 3, 4, high - 6);
    this.drawText(context, name, seconds(value, 4), x(value) + 8, 'left', y + high / 2);
  }

  // A bar to the right costs time, one to the left saves it; the sign says it too.
  drawStep(context, {part, begin, end}, x, y, high, brief) {
    const [from, to] = [x(Math.min(begin, end)), x(Math.max(begin, end))];
    context.fillStyle = part.seconds > 0 ? kSeries[1] : kSeries[0];
    context.fillRect(from, y + 5, Math.max(to - from, 1), high - 10);
    const seconds = signed(part.seconds, 'seconds');
    const text = brief ? seconds : `${seconds} (${signed(part.seconds / this.first, 'share')})`;
    const slower = part.seconds > 0;
    this.drawText(context, part.name, text, slower ? to + 6 : from - 6, slower ? 'left' : 'right', y + high / 2);
  }

  drawText(context, name, text, x, align, y) {
    context.fillStyle = colours.quiet;
    context.textAlign = 'right';
    context.fillText(name, 94, y);
    context.fillStyle = colours.ink;
    context.textAlign = align;
    context.fillText(text, x, y);
  }

  listen() {
    const canvas = this.plot.canvas;
    canvas.addEventListener('pointermove', event => {
      const part = this.found.parts[Math.floor((event.clientY - canvas.getBoundingClientRect().top) / 26) - 1];
      if (!part) return tip.hide();
      const causes = part.causes.filter(([, value]) => Math.abs(value) > 1e-6 * this.first);
      tip.show([`${part.name} ${signed(part.seconds, 'seconds')}`,
        ...causes.map(([cause, value]) => `${cause.replaceAll('_', ' ')} ${signed(value, 'seconds')}`)].join('\n'),
      event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerleave', () => tip.hide());
  }
}

function startDifference() {
  if (planned.length < 2) return null;
  byId('difference-part').hidden = false;
  return new Difference();
}
