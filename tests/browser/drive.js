// Uses a report as a person would, in a browser, and leaves what came of it in the document.
// Stands behind the page's own scripts; `faults` is filled by the test's first script.

const painted = id => {
  const canvas = document.getElementById(id);
  if (!canvas || canvas.offsetParent === null || canvas.width === 0) return 0;
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const {data} = context.getImageData(0, 0, copy.width, copy.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return seen.size;  // colours
};
const send = (id, type, options) => {
  const Event = type.startsWith('key') ? KeyboardEvent : type === 'wheel' ? WheelEvent : PointerEvent;
  document.getElementById(id).dispatchEvent(new Event(type, {bubbles: true, cancelable: true, ...options}));
};
const at = (id, x, y) => {
  const rect = document.getElementById(id).getBoundingClientRect();
  return {clientX: rect.left + x, clientY: rect.top + y};
};

// The chart of a canvas, as the button that saves it hands it over.
function plotOf(canvas) {
  const save = svgOfPlot;
  let plot = null;
  window.svgOfPlot = each => {
    plot = each;
    return '';
  };
  canvas.nextElementSibling.querySelector('button').click();
  window.svgOfPlot = save;
  return plot;
}

// Every chart that is shown, saved: its SVG can be read and holds the title, its PNG is twice as large.
function driveSaving(found) {
  found.charts = [];
  let saved = '';
  HTMLAnchorElement.prototype.click = function () { saved = `${this.download} ${this.href.slice(0, 5)}`; };
  for (const canvas of document.querySelectorAll('.plot canvas')) {
    if (canvas.offsetParent === null || canvas.width === 0) continue;
    const plot = plotOf(canvas);
    const svg = new DOMParser().parseFromString(svgOfPlot(plot), 'image/svg+xml');
    const png = canvasOfPlot(plot);
    found.charts.push(canvas.id);
    if (svg.querySelector('parsererror')) faults.push(`${canvas.id}: ${svg.documentElement.textContent}`);
    const title = plot.title ?? canvas.getAttribute('aria-label');
    if (!title || svg.querySelector('text').textContent !== title) faults.push(`${canvas.id} has no title`);
    if (svg.querySelectorAll('path, rect').length < 5) faults.push(`${canvas.id} is empty`);
    if (png.width !== 2 * (plot.width + 32)) faults.push(`${canvas.id}: ${png.width} pixels`);
    if (canvas.nextElementSibling.querySelectorAll('button').length !== 2) faults.push(`${canvas.id} cannot be saved`);
  }
  document.querySelector('.save button').click();
  found.saved = saved;
}

// Nothing is wider than the page or than its place, and no card stands alone in a row.
function driveLayout(found) {
  found.wider = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const table = document.getElementById('table');
  found.tableWider = table.scrollWidth - table.clientWidth;
  const cards = [...document.querySelectorAll('.card')], last = cards[cards.length - 1];
  const alone = cards.filter(each => each.offsetTop === last.offsetTop).length === 1;
  found.alone = alone && last.offsetWidth < document.getElementById('cards').clientWidth;
  found.answer = document.getElementById('answer').textContent;
}

// Tasks beside the passes; one is found under its lane.
function driveBeside(found) {
  const {classes, first, start, length, ofClass} = view.data.beside;
  found.kinds = [...new Set(classes.map(({kind}) => kind))].sort();
  const i = Array.from({length: first[1]}, (_, at) => at).find(at => classes[ofClass[at]].kind === 'message');
  if (i === undefined) return;
  const x = timeline.xOf(start[i] + length[i] / 2);
  send('timeline', 'pointermove', at('timeline', x, timeline.high + 2));
  found.says = document.getElementById('tip').textContent;
}

async function driveTimeline(found) {
  const middle = at('timeline', timeline.left + (timeline.plot.width - timeline.left) * 0.5, timeline.row * 0.5);
  send('timeline', 'pointermove', middle);
  found.hover = document.getElementById('tip').textContent;
  send('timeline', 'wheel', {...middle, deltaY: -2000, ctrlKey: true});
  await pause();
  found.zoomed = view.to - view.from;
  found.zoomedColours = painted('timeline');
  const from = view.from;
  send('timeline', 'pointerdown', {...middle, pointerId: 1});
  send('timeline', 'pointermove', {...middle, clientX: middle.clientX - 50, buttons: 1, pointerId: 1});
  send('timeline', 'pointerup', {...middle, pointerId: 1});
  found.moved = view.from - from;
  send('timeline', 'keydown', {key: 'ArrowDown'});
  send('timeline', 'keydown', {key: 'ArrowRight'});
  found.walked = document.getElementById('tip').textContent;
  send('timeline', 'keydown', {key: '0'});
  found.fitted = view.to - view.from;
}

async function drivePareto(found) {
  const other = pareto.rows.find(row => row !== state.row);
  const [x, y] = pareto.place(other);
  send('pareto', 'pointermove', at('pareto', x, y));
  found.paretoHover = document.getElementById('tip').textContent;
  send('pareto', 'click', at('pareto', x, y));
  found.opened = state.row;
  found.detail = document.getElementById('detail').textContent;
  send('pareto', 'keydown', {key: 'End'});
  found.walkedTo = state.row;
  found.frontier = pareto.frontier.length;
}

// Finds the best row of every cell again; then a walk by keys, a click, and axes that change places.
async function driveHeat(found) {
  const {x, y, value, levels} = heat;
  const inCell = (i, j) => state.shown.filter(row => levels[0].of[row] === i && levels[1].of[row] === j && value.values[row] !== null);
  found.axes = heat.axes.map(each => each.name);
  found.colours = painted('heat');
  found.cellsWrong = 0;
  for (let j = 0; j < levels[1].names.length; ++j) {
    for (let i = 0; i < levels[0].names.length; ++i) {
      const rows = inCell(i, j), fitting = rows.filter(row => fitsMemory(row));
      const best = (fitting.length > 0 ? fitting : rows).reduce((most, row) => Math.max(most, value.better * value.values[row]), -Infinity);
      const cell = heat.cell([i, j]);
      const right = rows.length === 0 ? cell === null
        : cell.fits === fitting.length > 0 && cell.count === rows.length && value.better * value.values[cell.row] === best;
      found.cellsWrong += right ? 0 : 1;
    }
  }
  found.unfitSaid = !document.getElementById('heat-unfit').hidden;
  const shares = heat.cells.filter(cell => cell?.fits).map(cell => heat.share(value.values[cell.row]));
  found.bestIsOpenedOn = Math.max(...shares) === heat.share(value.values[firstRow()]);
  document.getElementById('heat').focus();
  for (const key of ['ArrowUp', 'ArrowRight', 'ArrowLeft', 'ArrowRight']) send('heat', 'keydown', {key});
  found.walked = state.row;
  found.walkedTo = heat.cell([1, 1]).row;
  found.says = document.getElementById('tip').textContent;
  const [left, top, wide, high] = heat.rect([2, 0]);
  send('heat', 'click', at('heat', left + wide / 2, top + high / 2));
  found.clicked = state.row;
  found.clickedOn = heat.cell([2, 0]).row;
  const choose = document.getElementById('heat-x');
  choose.value = y.name;
  choose.dispatchEvent(new Event('change'));
  found.swapped = heat.x === y && heat.y === x && document.getElementById('heat-y').value === x.name;
  found.shares = heat.importance().map(each => each.share);
  found.lines = document.querySelectorAll('#importance tr').length;
  document.getElementById('heat-metric').value = 'bubble_rate';
  document.getElementById('heat-metric').dispatchEvent(new Event('change'));
  await pause();
  found.shareOfOne = etaSquared(levelsOf(columnNamed('batch.num_microbatches').values, 1000).of, columnNamed('bubble_rate').values);
}

async function driveTable(found) {
  if (!document.getElementById('all-columns').checked) document.getElementById('all-columns').click();
  const heads = [...document.querySelectorAll('#table thead button')];
  heads.find(each => each.title === 'iteration_seconds').click();
  const {values} = columnNamed('iteration_seconds');
  const rows = () => [...document.querySelectorAll('#table tbody tr[data-row]')];
  found.lines = rows().length;
  found.first = values[Number(rows()[0].dataset.row)];
  found.least = values.reduce((a, b) => Math.min(a, b));
  const input = document.getElementById('filter');
  const filter = text => {
    input.value = text;
    input.dispatchEvent(new Event('input', {bubbles: true}));
    return state.shown.length;
  };
  found.filtered = filter(`${columnNamed('schedule').values[0]} iteration<=${values[0] * 1000}ms`);
  found.none = filter('nosuchword');
  found.refused = (filter('nosuch>3'), document.getElementById('filter-note').textContent);
  const peak = columnNamed('peak_activation_bytes')?.values;
  if (peak && columnNamed('bubble_over_ideal')) {
    found.byLabel = filter(`peak activation < ${peak[0] / 2 ** 30}GiB`) ===
      peak.filter(value => value < peak[0]).length;
    found.wordsAndLabel = filter(`${columnNamed('schedule').values[0]} peak activation<=${peak[0]}B`);
    found.unclear = (filter('bubble<1'), document.getElementById('filter-note').textContent);
  }
  filter('');
}

function driveOrders(found) {
  found.legend = [...document.querySelectorAll('#side-legend span')].map(each => each.textContent);
  found.colours = ['side-a', 'side-b'].map(painted);
  found.tables = [...document.querySelectorAll('#orders-tables table')].map(each => each.rows.length);
  found.notes = document.querySelectorAll('#orders-note p').length;
}

(async () => {
  const found = {};
  try {
    await pause();
    Object.assign(found, {
      title: document.getElementById('title').textContent, cards: document.querySelectorAll('.card').length,
      about: document.getElementById('about').textContent, rows: rowCount, openedOn: state.row,
      timelineColours: painted('timeline'), memoryColours: painted('memory'), bubbleColours: painted('bubble'),
      paretoColours: painted('pareto'), passes: view.data?.passes ?? 0, critical: view.data?.critical.length ?? 0,
      scenario: document.getElementById('scenario').textContent, images: document.images.length,
    });
    driveLayout(found);
    if (view.data?.beside) driveBeside(found.beside = {});
    driveSaving(found);
    if (report.orders) driveOrders(found.orders = {});
    if (view.data) await driveTimeline(found);
    if (rowCount > 0) await driveTable(found);
    if (pareto) await drivePareto(found);
    if (report.plan) await drivePlan(found);
    if (heat) await driveHeat(found.heat = {});
    found.limits = memoryLimits().map(each => each.name);
    document.getElementById('theme').click();
    await pause();
    found.theme = document.documentElement.dataset.theme;
  } catch (error) {
    faults.push(String(error.stack ?? error));
  }
  leave(found);
})();
