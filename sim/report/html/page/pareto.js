// Every result as a point of two metrics, with the frontier of what nothing else beats on both.

// Colours that stay apart without red and green, and a shape each, for greys.
const kSeries = ['#1f77c9', '#d9730d', '#0f9d76', '#b0469c', '#8a6d00', '#5b6bd8', '#c23b4a', '#5d7a8c'];
const kShapes = ['circle', 'square', 'triangle', 'diamond', 'down', 'plus', 'cross', 'bar'];

function mark(context, shape, x, y, r) {
  context.beginPath();
  const polygon = (...points) => {
    for (const [dx, dy] of points) context.lineTo(x + dx * r, y + dy * r);
    context.closePath();
  };
  switch (shape) {
    case 'circle': context.arc(x, y, r, 0, 7); break;
    case 'square': context.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r); break;
    case 'triangle': polygon([0, -1.1], [1.05, 0.8], [-1.05, 0.8]); break;
    case 'diamond': polygon([0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]); break;
    case 'down': polygon([0, 1.1], [1.05, -0.8], [-1.05, -0.8]); break;
    case 'bar': context.rect(x - 1.2 * r, y - 0.4 * r, 2.4 * r, 0.8 * r); break;
    case 'plus': polygon([-0.35, -1.1], [0.35, -1.1], [0.35, -0.35], [1.1, -0.35], [1.1, 0.35], [0.35, 0.35],
      [0.35, 1.1], [-0.35, 1.1], [-0.35, 0.35], [-1.1, 0.35], [-1.1, -0.35], [-0.35, -0.35]); break;
    default: polygon([-1.1, -0.7], [-0.7, -1.1], [0, -0.4], [0.7, -1.1], [1.1, -0.7], [0.4, 0],
      [1.1, 0.7], [0.7, 1.1], [0, 0.4], [-0.7, 1.1], [-1.1, 0.7], [-0.4, 0]);
  }
}

// Rows that no other row beats on both axes, from left to right. Values that differ by rounding
// only count as equal.
function frontierOf(rows, x, y) {
  const scoreOf = axis => {
    const score = new Map(rows.map(row => [row, axis.better * Number(axis.values[row].toPrecision(10))]));
    return row => score.get(row);
  };
  const [across, up] = [scoreOf(x), scoreOf(y)];
  const sorted = [...rows].sort((a, b) => across(b) - across(a) || up(b) - up(a) || a - b);
  const frontier = [];
  for (const row of sorted) {
    if (frontier.length === 0 || up(row) > up(frontier[frontier.length - 1])) frontier.push(row);
  }
  return frontier.sort((a, b) => x.values[a] - x.values[b]);
}

// Points of one look: of a schedule, of several clusters also of one cluster.
function seriesName(row) {
  if (severalPlans) return `${nameOfPlan(planned[row].plan)} ${planned[row].layout.schedule}`;
  if (!report.sweep) return String(results[row].result.label ?? results[row].result.schedule);
  const options = columnNamed('options')?.values[row] ?? null;
  return columnNamed('schedule').values[row] + (options === null ? '' : ` (${options})`);
}

// Nothing where it is not known.
function fitsMemory(row) {
  const value = columnNamed('fits')?.values[row] ?? null;
  return value === null ? null : value !== 'no';
}

class Pareto {
  constructor() {
    const names = Array.from({length: rowCount}, (_, row) => seriesName(row));
    this.series = [...new Set(names)];
    const ofName = new Map(this.series.map((name, i) => [name, i]));
    this.seriesOf = names.map(name => ofName.get(name));
    this.hover = -1;
    this.axes = report.sweep ? swept() : [];
    this.bands = byId('bands');
    this.bands.parentElement.hidden = !results.some(({result}) => result.band);
    this.bands.addEventListener('change', () => this.update());
    this.fillChoices();
    this.plot = new Plot(byId('pareto'), 380, (...to) => this.draw(...to));
    this.fillLegend();
    this.listen();
    this.update();
  }

  fillChoices() {
    const fill = (id, names) => {
      const select = byId(id);
      for (const each of columns.filter(one => one.better !== 0)) select.append(el('option', {value: each.name}, each.label));
      // The first that every row has, else the first that any has.
      const whole = names.find(name => columnNamed(name)?.values.every(value => value !== null) && ranks(columnNamed(name)));
      select.value = whole ?? names.find(name => columnNamed(name)) ?? select.options[0]?.value ?? '';
      select.addEventListener('change', () => this.update());
    };
    // GPUs of several kinds are held against each other by what training takes.
    const budget = severalPlans ? [['price'], ['days', 'iteration_seconds']] : [[], []];
    fill('pareto-x', [...budget[0], 'peak_memory_bytes', 'peak_activation_bytes', 'bubble_rate']);
    fill('pareto-y', [...budget[1], ...(report.plan ? ['tokens_per_second_per_gpu'] : []), 'mfu', 'tokens_per_second_per_gpu',
      'samples_per_second_per_gpu', 'microbatches_per_second_per_gpu', 'samples_per_second', 'iteration_seconds']);
  }

  // A second round of colours has other shapes.
  look(series) {
    const round = Math.floor(series / kSeries.length);
    return [kSeries[series % kSeries.length], kShapes[(series + round) % kShapes.length]];
  }

  fillLegend() {
    const most = 24;
    kLegends['pareto-legend'] = this.series.slice(0, most).map((name, i) => [this.look(i)[0], name, this.look(i)[1]]);
    byId('pareto-legend').replaceChildren(...this.series.slice(0, most).map((name, i) => {
      const canvas = el('canvas', {width: 28, height: 28});
      const context = canvas.getContext('2d');
      const [fill, shape] = this.look(i);
      context.fillStyle = fill;
      mark(context, shape, 14, 14, 9);
      context.fill();
      return el('span', {}, canvas, name);
    }), ...(this.series.length > most ? [`and ${this.series.length - most} more`] : []));
  }

  // After a change of axes or of the filter.
  update() {
    this.x = columnNamed(byId('pareto-x').value);
    this.y = columnNamed(byId('pareto-y').value);
    this.rows = state.shown.filter(row => this.x.values[row] !== null && this.y.values[row] !== null);
    this.frontier = frontierOf(this.rows.filter(row => fitsMemory(row) !== false), this.x, this.y);
    this.banded = this.bands.checked ? this.rows.filter(row => this.isMarked(row)) : [];
    this.order = [...this.rows].sort((a, b) => this.x.values[a] - this.x.values[b] || a - b);
    const span = axis => {
      let low = Infinity, high = -Infinity;
      const take = value => [low, high] = [Math.min(low, value), Math.max(high, value)];
      for (const row of this.rows) take(axis.values[row]);
      for (const row of this.banded) bandOf(row, axis)?.forEach(take);
      for (const {size} of this.limitsOn(axis)) if (size < 1.3 * high) take(size);
      if (!(high - low > 1e-9 * Math.abs(high))) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
      return [low - (high - low) * 0.04, high + (high - low) * 0.04];
    };
    this.spanX = span(this.x);
    this.spanY = span(this.y);
    const names = `${this.y.label} against ${this.x.label}`;
    const unfit = this.rows.filter(row => fitsMemory(row) === false).length;
    byId('pareto').setAttribute('aria-label', `${names}: ${this.rows.length} points, ${this.frontier.length} on the frontier` +
      (unfit > 0 ? `, ${unfit} that do not fit into memory` : ''));
    byId('pareto-unfit').hidden = unfit === 0;
    document.querySelector('#pareto-part h2').textContent = names[0].toUpperCase() + names.slice(1);
    this.plot.draw();
  }

  // On the frontier, open, or what others are held against.
  isMarked(row) { return row === state.row || this.frontier.includes(row) || planned[row]?.place === 0; }

  // Memory of a GPU, where the axis is memory: [{size, name}].
  limitsOn(axis) { return axis.name === 'peak_memory_bytes' ? memoryLimits() : []; }

  at(x, y) {
    const {left, top, width, height} = this.box;
    return [left + (x - this.spanX[0]) / (this.spanX[1] - this.spanX[0]) * width,
      top + height - (y - this.spanY[0]) / (this.spanY[1] - this.spanY[0]) * height];
  }
  place(row) { return this.at(this.x.values[row], this.y.values[row]); }

  draw(context, width, height) {
    this.box = {left: 72, top: 10, width: width - 72 - 14, height: height - 10 - 44};
    if (this.rows.length === 0) {
      context.fillStyle = colours.quiet;
      context.fillText('Nothing to show: no row has both.', this.box.left, height / 2);
      return;
    }
    this.drawAxes(context);
    this.drawLimits(context);
    for (const row of this.banded) this.drawBand(context, row);
    const radius = this.rows.length > 2000 ? 2.2 : this.rows.length > 300 ? 3.2 : 5;
    const onFrontier = new Set(this.frontier);
    context.globalAlpha = this.rows.length > 300 ? 0.45 : 0.85;
    for (const row of this.rows) if (!onFrontier.has(row)) this.drawPoint(context, row, radius);
    context.globalAlpha = 1;
    this.drawFrontier(context);
    for (const row of this.frontier) this.drawPoint(context, row, Math.max(radius, 4.5), colours.ink);
    this.drawNames(context);
    if (this.rows.includes(state.row)) this.drawRing(context, state.row, colours.ink, 9);
    if (this.hover >= 0) this.drawRing(context, this.hover, colours.accent, 7);
  }

  drawPoint(context, row, radius, stroke = null) {
    const [fill, shape] = this.look(this.seriesOf[row]);
    mark(context, shape, ...this.place(row), radius);
    if (fitsMemory(row) === false) {
      context.strokeStyle = fill;
      context.lineWidth = 1.2;
      context.stroke();
      return;
    }
    context.fillStyle = fill;
    context.fill();
    if (!stroke) return;
    context.strokeStyle = stroke;
    context.lineWidth = 1;
    context.stroke();
  }

  drawRing(context, row, colour, radius) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(...this.place(row), radius, 0, 7);
    context.stroke();
  }

  drawFrontier(context) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.2;
    context.setLineDash([5, 3]);
    context.beginPath();
    this.frontier.forEach((row, i) => i === 0 ? context.moveTo(...this.place(row)) : context.lineTo(...this.place(row)));
    context.stroke();
    context.setLineDash([]);
  }

  // From what measured runs would have a row at best take to what at worst.
  drawBand(context, row) {
    const ends = axis => {
      const band = bandOf(row, axis) ?? [axis.values[row], axis.values[row]];
      return axis.better < 0 ? band : [band[1], band[0]];
    };
    const [x, y] = [ends(this.x), ends(this.y)];
    const [from, to] = [this.at(x[0], y[0]), this.at(x[1], y[1])];
    const long = Math.hypot(to[0] - from[0], to[1] - from[1]);
    if (long < 1) return;
    const [dx, dy] = [(to[1] - from[1]) / long * 5, (from[0] - to[0]) / long * 5];
    context.strokeStyle = row === state.row ? colours.ink : colours.quiet;
    context.lineWidth = row === state.row ? 2 : 1;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    for (const [px, py] of [from, to]) {
      context.moveTo(px - dx, py - dy);
      context.lineTo(px + dx, py + dy);
    }
    context.stroke();
  }

  drawLimits(context) {
    const {left, top, width, height} = this.box;
    context.strokeStyle = context.fillStyle = colours.critical;
    context.lineWidth = 1.5;
    this.taken = [];  // places of names
    const line = (from, to) => {
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
    };
    this.limitsOn(this.x).forEach(({size, name}, i) => {
      const [x] = this.at(size, this.spanY[0]);
      if (x < left || x > left + width) return;
      line([x, top], [x, top + height]);
      context.textAlign = 'right';
      context.fillText(name, x - 5, top + 9 + 13 * i);
      this.taken.push({x: x - 5 - context.measureText(name).width, y: top + 9 + 13 * i, wide: context.measureText(name).width});
    });
    for (const {size, name} of this.limitsOn(this.y)) {
      const [, y] = this.at(this.spanX[0], size);
      if (y < top || y > top + height) continue;
      line([left, y], [left + width, y]);
      context.textAlign = 'right';
      context.fillText(name, left + width - 5, y - 8);
    }
    context.textAlign = 'left';
  }

  // A plan's rows by place and idea, schedules by name, points of a sweep by what was swept.
  nameOf(row) {
    if (planned[row]) {
      const {place, layout} = planned[row];
      return place === 0 ? nameOfBaseline(layout) : `${place}${layout.idea ? ` ${layout.idea.split(', ')[0]}` : ''}`;
    }
    return report.sweep ? this.axes.map(each => String(each.values[row] ?? '-')).join(', ') : nameOfRow(row);
  }

  // Rows that say most: the open one, the frontier, a plan's ideas, all of a few; as far as names do not overlap.
  drawNames(context) {
    const rows = this.rows.filter(row => this.rows.length <= 12 || this.isMarked(row) || planned[row]?.layout.idea);
    const rank = row => planned[row]?.place === 0 ? 0 : row === state.row ? 1 : this.frontier.includes(row) ? 2 : 3;
    context.textAlign = 'left';
    if (this.rows.length <= 400) {
      for (const row of this.rows) {
        const [x, y] = this.place(row);
        this.taken.push({x: x - 5, y, wide: 10});  // no name hides a point
      }
    }
    for (const row of rows.sort((a, b) => rank(a) - rank(b) || a - b)) {
      const text = this.nameOf(row), wide = context.measureText(text).width;
      const [px, py] = this.place(row);
      if (planned[row]?.place === 0) this.drawSquare(context, px, py);
      const spot = this.spotFor(px, py, wide);
      if (!spot) continue;
      this.taken.push({...spot, wide});
      context.lineWidth = 3;
      context.strokeStyle = colours.panel;
      context.strokeText(text, spot.x, spot.y);
      context.fillStyle = colours.ink;
      context.fillText(text, spot.x, spot.y);
    }
  }

  // A place beside a point that is inside the chart and free; nothing where there is none.
  spotFor(px, py, wide) {
    const {left, top, width, height} = this.box;
    const spots = [[12, -8], [12, 10], [-12 - wide, -8], [-12 - wide, 10]].map(([dx, dy]) => ({x: px + dx, y: py + dy}));
    return spots.find(({x, y}) => x > left && x + wide < left + width && y > top + 4 && y < top + height - 4 &&
      !this.taken.some(each => Math.abs(each.y - y) < 13 && x < each.x + each.wide + 4 && each.x < x + wide + 4));
  }

  drawSquare(context, x, y) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.strokeRect(x - 8, y - 8, 16, 16);
  }

  drawAxes(context) {
    const {left, top, width, height} = this.box;
    context.lineWidth = 1;
    context.textAlign = 'center';
    for (const [value, text] of ticksOf(...this.spanX, this.x.kind, width / 90)) {
      const at = Math.round(left + (value - this.spanX[0]) / (this.spanX[1] - this.spanX[0]) * width) + 0.5;
      context.fillStyle = colours.grid;
      context.fillRect(at, top, 1, height);
      context.fillStyle = colours.quiet;
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(at, left + width + 12 - half), top + height + 12);
    }
    context.textAlign = 'right';
    for (const [value, text] of ticksOf(...this.spanY, this.y.kind, height / 45)) {
      const at = Math.round(top + height - (value - this.spanY[0]) / (this.spanY[1] - this.spanY[0]) * height) + 0.5;
      context.fillStyle = colours.grid;
      context.fillRect(left, at, width, 1);
      context.fillStyle = colours.quiet;
      context.fillText(text, left - 8, at);
    }
    context.strokeStyle = colours.line;
    context.strokeRect(left + 0.5, top + 0.5, width, height);
    context.fillStyle = colours.ink;
    context.textAlign = 'center';
    const towards = axis => axis.better < 0 ? 'less is better' : 'more is better';
    context.fillText(`${this.x.label} (${towards(this.x)})`, left + width / 2, top + height + 32);
    context.save();
    context.translate(9, top + height / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(`${this.y.label} (${towards(this.y)})`, 0, 0);
    context.restore();
    context.textAlign = 'left';
  }

  // The row whose point is nearest to a place on the page, within reach; -1 for none.
  rowAt(event) {
    const rect = this.plot.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
    let best = -1, distance = 14 * 14;
    for (const row of this.box ? this.rows : []) {
      const [px, py] = this.place(row);
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < distance) [best, distance] = [row, d];
    }
    return best;
  }

  describe(row) {
    const line = axis => {
      const band = bandOf(row, axis)?.map(end => show(end, axis.kind)).join(' to ');
      return `${axis.label}: ${show(axis.values[row], axis.kind)}${band ? ` (band ${band})` : ''}`;
    };
    return [nameOfRow(row), line(this.x), line(this.y), ...(fitsMemory(row) === false ? ['does not fit into memory'] : []),
      ...(this.frontier.includes(row) ? ['on the frontier'] : [])].join('\n');
  }

  listen() {
    const canvas = this.plot.canvas;
    canvas.addEventListener('pointermove', event => {
      const row = this.rowAt(event);
      canvas.style.cursor = row >= 0 ? 'pointer' : 'default';
      if (row >= 0) tip.show(this.describe(row), event.clientX, event.clientY);
      else tip.hide();
      if (row !== this.hover) {
        this.hover = row;
        this.plot.draw();
      }
    });
    canvas.addEventListener('pointerleave', () => { tip.hide(); this.hover = -1; this.plot.draw(); });
    canvas.addEventListener('click', event => { const row = this.rowAt(event); if (row >= 0) state.open(row); });
    canvas.addEventListener('keydown', event => {
      const steps = {ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -rowCount, End: rowCount};
      if (!(event.key in steps) || this.order.length === 0) return;
      event.preventDefault();
      const at = this.order.indexOf(state.row) + steps[event.key];
      const row = this.order[Math.max(0, Math.min(at, this.order.length - 1))];
      state.open(row);
      if (!this.box) return;
      const rect = canvas.getBoundingClientRect();
      const [x, y] = this.place(row);
      tip.show(this.describe(row), rect.left + x, rect.top + y);
    });
    canvas.addEventListener('blur', () => tip.hide());
    state.on('shown', () => this.update());
    state.on('row', () => this.bands.checked && !this.bands.parentElement.hidden ? this.update() : this.plot.draw());
  }
}

function startPareto() {
  const enough = !report.orders && rowCount > 1 && columns.filter(each => each.better !== 0).length > 1;
  if (enough) return new Pareto();
  byId('explore').classList.add('alone');
  byId('explore').hidden = true;  // what it would say stands in cards and scenario
  return null;
}
