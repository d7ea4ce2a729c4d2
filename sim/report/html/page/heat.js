// A sweep over two of its axes: in each cell the best that fits; and how much each axis matters.

const kMostCells = 40;   // along an axis
const kMostLevels = 12;  // of an axis's importance

// From the worst to the best of the cells: the best stands out most, in greys too.
const kScale = {light: ['#e6eef8', '#08306b'], dark: ['#232c39', '#b9dcff']};

function mixed([from, to], share) {
  const [a, b] = [rgbOf(from), rgbOf(to)];
  return a.map((value, i) => Math.round(value + (b[i] - value) * share));
}

// True where two columns advance together, as a swept key does with the choice that it makes.
const together = (a, b) => {
  const pairs = new Set(a.values.map((value, i) => JSON.stringify([value, b.values[i]]))).size;
  return pairs === new Set(a.values).size && pairs === new Set(b.values).size;
};

// The keys, the schedule, and what else was chosen as far as no key says it.
function swept() {
  const axes = [...report.sweep.keys, 'schedule'].map(columnNamed).filter(each => each && differ(each.values));
  for (const each of kChoice.map(columnNamed)) {
    if (each && !axes.some(axis => together(axis, each))) axes.push(each);
  }
  return axes;
}

class HeatMap {
  constructor(axes) {
    this.axes = axes;
    this.at = [0, 0];
    this.hover = null;
    this.metric = byId('heat-metric');
    this.selects = [byId('heat-x'), byId('heat-y')];
    this.plot = new Plot(byId('heat'), 300, (...to) => this.draw(...to));
    this.fillChoices();
    this.listen();
    this.update();
  }

  fillChoices() {
    const metrics = columns.filter(each => each.better !== 0);
    this.metric.append(...metrics.map(each => el('option', {value: each.name}, each.label)));
    this.metric.value = kOpening[0] ?? metrics[0].name;
    for (const select of this.selects) {
      select.append(...this.axes.map(each => el('option', {value: each.name, title: each.name}, each.label)));
    }
    const [x, y] = this.importance();
    this.choose(x.axis, y.axis);
  }

  choose(x, y) {
    [this.x, this.y] = [x, y];
    this.selects.forEach((select, i) => { select.value = [x, y][i].name; });
  }

  // [{axis, share}], the largest first.
  importance() {
    const values = columnNamed(this.metric.value).values;
    const ofShown = each => state.shown.map(row => each[row]);
    return this.axes.map(axis => ({axis, share: etaSquared(levelsOf(ofShown(axis.values), kMostLevels).of, ofShown(values))}))
      .sort((a, b) => b.share - a.share);
  }

  // After a change of axes, of the metric or of the filter.
  update() {
    this.value = columnNamed(this.metric.value);
    this.levels = [this.x, this.y].map(axis => levelsOf(axis.values, kMostCells));
    this.fillCells();
    const fitting = this.cells.filter(cell => cell && cell.fits).map(cell => this.value.values[cell.row]);
    this.span = [fitting.reduce((a, b) => Math.min(a, b), Infinity), fitting.reduce((a, b) => Math.max(a, b), -Infinity)];
    this.at = this.at.map((at, i) => Math.min(at, this.levels[i].names.length - 1));
    byId('heat-unfit').hidden = this.cells.every(cell => !cell || cell.fits);
    const [wide, high] = this.levels.map(({names}) => names.length);
    this.plot.canvas.setAttribute('aria-label', `Best ${this.value.label} over ${this.x.label} (${wide}) and ${this.y.label} (${high})`);
    this.plot.setHeight(Math.max(160, Math.min(high * 34, 420)) + 92);
    this.fillImportance();
    this.plot.draw();
  }

  // The best row of each cell, of those that fit before all that do not.
  fillCells() {
    const [{names, of: across}, {of: up}] = this.levels;
    this.cells = Array.from({length: names.length * this.levels[1].names.length}, () => null);
    const {values, better} = this.value;
    for (const row of state.shown) {
      if (values[row] === null || across[row] < 0 || up[row] < 0) continue;
      const index = up[row] * names.length + across[row];
      const fits = fitsMemory(row) !== false, cell = this.cells[index] ?? {row, fits, count: 0};
      const ahead = fits === cell.fits ? better * (values[row] - values[cell.row]) > 0 : fits;
      this.cells[index] = {...(ahead ? {row, fits} : cell), count: cell.count + 1};
    }
  }
  cell([x, y]) { return this.cells[y * this.levels[0].names.length + x]; }

  fillImportance() {
    const all = this.importance();
    byId('importance-of').textContent = this.value.label;
    const line = ({axis, share}) => el('tr', {}, el('td', {className: 'text', title: axis.name}, axis.label),
      el('td', {}, share === null ? '-' : fixed(100 * share, 1) + '%'),
      el('td', {className: 'share'}, el('i', {style: `width:${100 * (share ?? 0)}%`})));
    byId('importance').replaceChildren(el('table', {}, el('tbody', {}, ...all.map(line))));
  }

  // A value's place among the cells that fit: 0 the worst, 1 the best.
  share(value) {
    const [low, high] = this.span;
    const share = high > low ? (value - low) / (high - low) : 1;
    return this.value.better > 0 ? share : 1 - share;
  }
  scale() { return kScale[document.documentElement.dataset.theme] ?? kScale.light; }

  draw(context, width, height) {
    const [across, up] = this.levels.map(({names}) => names);
    const longest = Math.max(...up.map(name => context.measureText(name).width));
    const left = Math.min(Math.max(longest, 24) + 30, width * 0.4);
    this.box = {left, top: 38, wide: (width - left - 8) / across.length, high: (height - 38 - 46) / up.length};
    this.drawScale(context, width);
    this.cells.forEach((cell, i) => this.drawCell(context, cell, i % across.length, Math.floor(i / across.length)));
    this.drawNames(context, width, height);
    const own = this.cells.findIndex(cell => cell && cell.row === state.row);
    if (own >= 0) this.frame(context, [own % across.length, Math.floor(own / across.length)], colours.ink, 2.5);
    if (document.activeElement === this.plot.canvas) this.frame(context, this.at, colours.accent, 2);
    if (this.hover) this.frame(context, this.hover, colours.accent, 2);
  }

  // The first level of the upward axis is the lowest line.
  rect([x, y]) {
    const {left, top, wide, high} = this.box;
    return [left + x * wide, top + (this.levels[1].names.length - 1 - y) * high, wide, high];
  }

  // On a line of the panel's colour, to be seen on cells of any.
  frame(context, at, colour, thick) {
    const [x, y, wide, high] = this.rect(at);
    for (const [stroke, line] of [[colours.panel, thick + 3], [colour, thick]]) {
      context.strokeStyle = stroke;
      context.lineWidth = line;
      context.strokeRect(x + 1, y + 1, wide - 3, high - 3);
    }
  }

  drawCell(context, cell, i, j) {
    const [x, y, wide, high] = this.rect([i, j]);
    const gap = wide > 8 && high > 8 ? 1 : 0;
    if (!cell) return;
    const text = show(this.value.values[cell.row], this.value.kind);
    if (cell.fits) {
      const rgb = mixed(this.scale(), this.share(this.value.values[cell.row]));
      context.fillStyle = `rgb(${rgb})`;
      context.fillRect(x, y, wide - gap, high - gap);
      context.fillStyle = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 135 ? '#0b1017' : '#ffffff';
    } else {
      this.hatch(context, x, y, wide - gap, high - gap);
      context.fillStyle = colours.ink;
    }
    if (context.measureText(text).width + 8 > wide || high < 14) return;
    context.textAlign = 'center';
    if (!cell.fits) {
      context.lineWidth = 4;
      context.strokeStyle = colours.panel;
      context.strokeText(text, x + wide / 2, y + high / 2);
    }
    context.fillText(text, x + wide / 2, y + high / 2);
  }

  hatch(context, x, y, wide, high) {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, high);
    context.clip();
    context.strokeStyle = colours.quiet;
    context.lineWidth = 0.8;
    context.beginPath();
    for (let at = x - high; at < x + wide; at += 6) {
      context.moveTo(at, y + high);
      context.lineTo(at + high, y);
    }
    context.stroke();
    context.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1);
    context.restore();
  }

  drawScale(context, width) {
    const [low, high] = this.span;
    context.textAlign = 'left';
    context.fillStyle = colours.quiet;
    if (!(high >= low)) return context.fillText('nothing that is shown fits into memory', 4, 14);
    const [worst, best] = (this.value.better > 0 ? [low, high] : [high, low]).map(value => show(value, this.value.kind));
    const begin = 4 + context.measureText(worst).width + 8, long = Math.min(180, width / 3);
    context.fillText(worst, 4, 14);
    for (let i = 0; i < long; ++i) {
      context.fillStyle = `rgb(${mixed(this.scale(), i / long)})`;
      context.fillRect(begin + i, 8, 1.5, 12);
    }
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(begin - 0.5, 7.5, long + 1.5, 13);
    context.fillStyle = colours.quiet;
    context.fillText(`${best} (best)`, begin + long + 8, 14);
  }

  drawNames(context, width, height) {
    const {left, top, wide, high} = this.box;
    const [across, up] = this.levels.map(({names}) => names);
    context.fillStyle = colours.quiet;
    context.textAlign = 'center';
    const widest = Math.max(...across.map(name => context.measureText(name).width));
    const step = Math.ceil((widest + 8) / wide);
    const low = top + up.length * high;
    for (let i = 0; i < across.length; i += step) context.fillText(across[i], left + (i + 0.5) * wide, low + 12, wide * step);
    context.textAlign = 'right';
    const each = Math.ceil(14 / high);
    for (let j = 0; j < up.length; j += each) {
      context.fillText(up[j], left - 6, top + (up.length - 1 - j + 0.5) * high, left - 26);
    }
    context.fillStyle = colours.ink;
    context.textAlign = 'center';
    context.fillText(this.x.label, left + across.length * wide / 2, height - 14);
    context.save();
    context.translate(8, top + up.length * high / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(this.y.label, 0, 0);
    context.restore();
    context.textAlign = 'left';
  }

  describe(at) {
    const where = [this.x, this.y].map((axis, i) => `${axis.label}: ${this.levels[i].names[at[i]]}`);
    const cell = this.cell(at);
    if (!cell) return [...where, 'no result'].join('\n');
    return [...where, `${this.value.label}: ${show(this.value.values[cell.row], this.value.kind)}`,
      `${nameOfRow(cell.row)}, the best of ${counted(cell.count, 'point')}`,
      ...(cell.fits ? [] : ['does not fit into memory'])].join('\n');
  }

  cellAt(event) {
    if (!this.box) return null;
    const rect = this.plot.canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - rect.left - this.box.left) / this.box.wide);
    const down = Math.floor((event.clientY - rect.top - this.box.top) / this.box.high);
    const [wide, high] = this.levels.map(({names}) => names.length);
    return x >= 0 && x < wide && down >= 0 && down < high ? [x, high - 1 - down] : null;
  }

  go(at) {
    this.at = at;
    const cell = this.cell(at);
    if (cell) state.open(cell.row);
    this.plot.draw();
  }

  listen() {
    const canvas = this.plot.canvas;
    this.metric.addEventListener('change', () => this.update());
    // The axis that the other already has goes over to it.
    this.selects.forEach((select, i) => select.addEventListener('change', () => {
      const chosen = columnNamed(select.value), [x, y] = [this.x, this.y];
      if (i === 0) this.choose(chosen, chosen === y ? x : y);
      else this.choose(chosen === x ? y : x, chosen);
      this.update();
    }));
    canvas.addEventListener('pointermove', event => {
      this.hover = this.cellAt(event);
      if (this.hover) tip.show(this.describe(this.hover), event.clientX, event.clientY);
      else tip.hide();
      this.plot.draw();
    });
    canvas.addEventListener('pointerleave', () => { tip.hide(); this.hover = null; this.plot.draw(); });
    canvas.addEventListener('click', event => { const at = this.cellAt(event); if (at) this.go(at); });
    canvas.addEventListener('keydown', event => {
      const steps = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
      if (!(event.key in steps)) return;
      event.preventDefault();
      const at = this.at.map((each, i) => Math.max(0, Math.min(each + steps[event.key][i], this.levels[i].names.length - 1)));
      this.go(at);
      if (!this.box) return;
      const rect = canvas.getBoundingClientRect(), [x, y, wide, high] = this.rect(at);
      tip.show(this.describe(at), rect.left + x + wide / 2, rect.top + y + high / 2);
    });
    canvas.addEventListener('focus', () => this.plot.draw());
    canvas.addEventListener('blur', () => { tip.hide(); this.plot.draw(); });
    state.on('shown', () => this.update());
    state.on('row', () => this.plot.draw());
  }
}

function startHeat() {
  const axes = report.sweep ? swept() : [];
  if (axes.length < 2 || !columns.some(each => each.better !== 0)) return null;
  byId('axes-part').hidden = false;
  return new HeatMap(axes);
}
