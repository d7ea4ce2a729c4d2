// Puts the parts together: one bench or two, and what follows on each in one table.

const benches = [];

// [name, its text of a bench and a result, the number whose change is shown, or null]
const kRows = [
  ['makespan', (bench, result) => seconds(result.makespan), result => result.makespan],
  ['longest span of a device', (bench, result) => seconds(result.cost), result => result.cost],
  ['bubble rate', (bench, result) => show(result.bubble_rate, 'share'), null],
  ['largest peak', (bench, result) => bench.peakText(highest(bench, result)), (result, bench) => bench.peakOf(highest(bench, result))],
  ['passes on the critical path', (bench, result) => String(result.critical.length), null],
  ['time between them', (bench, result) => seconds(messagesOn(result), 4), messagesOn],
];
function highest(bench, result) {
  return result.devices.reduce((most, device) => (bench.peakOf(device) > bench.peakOf(most) ? device : most));
}
function messagesOn({critical, start, end, makespan}) {
  return Math.max(0, critical.reduce((left, [device, at]) => left - (end[device][at] - start[device][at]), makespan));
}

const percent = change => (Number.isFinite(change) ? `${change > 0 ? '+' : ''}${fixed(100 * change, 2)}%` : '');

function fillNumbers() {
  const heads = [''], cells = kRows.map(([name]) => [el('td', {}, name)]);
  const add = (head, text, over = () => false) => {
    heads.push(head);
    kRows.forEach((row, i) => cells[i].push(el('td', {className: over(row[0]) ? 'over' : ''}, text(row))));
  };
  for (const bench of benches) {
    const {shown, planned} = bench;
    add(`${bench.name}: ${bench.schedule.label}`, ([name, text]) => text(bench, shown.result) +
      (name === 'largest peak' && bench.overLimit().length > 0 ? ' !' : ''),
    name => name === 'largest peak' && bench.overLimit().length > 0);
    add('as planned', ([, text]) => text(bench, planned));
    add('change', ([, , number]) => (number ? percent(number(shown.result, bench) / number(planned, bench) - 1) : ''));
  }
  if (benches.length === 2) {
    const [a, b] = benches;
    const alike = a.schedule.memory === b.schedule.memory;
    add('B against A', ([name, , number]) => (number && (alike || name !== 'largest peak')
      ? percent(number(b.shown.result, b) / number(a.shown.result, a) - 1) : ''));
  }
  byId('numbers').replaceChildren(el('table', {},
    el('thead', {}, el('tr', {}, ...heads.map(text => el('th', {className: 'plain', scope: 'col'}, text)))),
    el('tbody', {}, ...cells.map(row => el('tr', {}, ...row)))));
}

// All boards have one scale, which stays while a pass is dragged.
function showAll() {
  if (benches.some(bench => !bench.result)) return;
  if (!benches.some(bench => bench.board.drag)) {
    view.seconds = Math.max(...benches.flatMap(bench => [bench.result.makespan, bench.planned.makespan]));
  }
  fillNumbers();
  for (const bench of benches) {
    bench.canvas.setAttribute('aria-label', `${bench.schedule.label}: ${counted(bench.state.order.length, 'device')}, makespan ${seconds(bench.result.makespan)}`);
    bench.board.plot.draw();
  }
}

function addBench(number) {
  const bench = new Bench('AB'[benches.length], number, showAll);
  benches.push(bench);
  byId('benches').append(bench.node);
  showBoth();
}
function showBoth() {
  byId('benches').classList.toggle('two', benches.length === 2);
  byId('second').setAttribute('aria-pressed', String(benches.length === 2));
  showAll();
}
function toggleSecond() {
  if (benches.length === 1) return addBench(Math.min(1, given.schedules.length - 1));
  if (Bench.active === benches[1]) Bench.active = null;
  benches.pop().node.remove();
  showBoth();
}

function startKeys() {
  document.addEventListener('keydown', event => {
    const {key} = event;
    if (!(event.ctrlKey || event.metaKey) || event.target.tagName === 'INPUT' || !/^[zy]$/i.test(key)) return;
    event.preventDefault();
    const bench = Bench.active ?? benches[0];
    if (key.toLowerCase() === 'y' || event.shiftKey) bench.goForth();
    else bench.goBack();
  });
}

byId('title').textContent = given.file;
byId('about').textContent = [counted(given.schedules.length, 'schedule'),
  given.overrides.length > 0 ? `changed: ${given.overrides.join(' ')}` : null,
  'passes of one iteration, as pipesim run has them; the optimizer step is not on the page', `pipesim ${given.version}`].filter(Boolean).join(' \u00b7 ');
startTheme();
addBench(0);
if (given.schedules.length > 1) addBench(1);
byId('critical').addEventListener('change', showAll);
byId('zoom-in').addEventListener('click', () => view.zoom(0.5, (view.from + view.to) / 2));
byId('zoom-out').addEventListener('click', () => view.zoom(2, (view.from + view.to) / 2));
byId('zoom-fit').addEventListener('click', () => view.move(0, 1));
byId('second').addEventListener('click', toggleSecond);
startKeys();
