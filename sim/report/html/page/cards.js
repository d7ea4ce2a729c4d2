// The numbers that one looks for first, of the open result or of a sweep as a whole.

function card(name, value, note = '', text = false) {
  return el('div', {className: 'card'}, el('div', {className: 'name'}, name),
    el('div', {className: 'value' + (text ? ' text' : '')}, value), el('div', {className: 'note'}, note));
}

const kCostNotes = {
  given: 'seconds as the scenario gives them', measured: 'from a calibration file',
  roofline: 'from model and catalogue, not calibrated',
};

function costCard(cost, calibration) {
  return card('source of costs', cost, calibration ? `calibrated: ${calibration}` : kCostNotes[cost] ?? '', true);
}

// "12.3% less than 1f1b", against the first result or the baseline.
function against(name, value, kind) {
  const other = rowToCompare(state.row);
  const first = columnNamed(name)?.values[other];
  if (typeof first !== 'number' || (first === 0 && kind !== 'share')) return '';
  const change = kind === 'share' ? 100 * (value - first) : 100 * (value / first - 1);
  const unit = kind === 'share' ? ' points' : '%';
  const than = report.plan ? 'the baseline' : nameOfRow(other);
  if (Math.abs(change) < 0.005) return `as ${than}`;
  return `${fixed(Math.abs(change), 1)}${unit} ${change > 0 ? 'more' : 'less'} than ${than}`;
}

// The largest of the devices, and what it has beside activations.
function memoryNote(result, run) {
  const capacity = run.document.scenario?.memory?.capacity_bytes;
  if (typeof capacity !== 'number') return 'of the fullest GPU';
  const free = capacity - result.peak_memory_bytes;
  return free >= 0 ? `${bytes(free)} of ${bytes(capacity)} left` : `${bytes(-free)} more than ${bytes(capacity)}`;
}

function cardsOfResult({run, result}) {
  const cards = [];
  const add = (name, kind, notes) => {
    if (typeof result[name] !== 'number') return;
    const value = columnNamed(name) ? shownIn(state.row, columnNamed(name)) : show(result[name], kind);
    cards.push(card(labelOf(name), value, notes || against(name, result[name], kind)));
  };
  const ensemble = result.ensemble;
  const notes = [];
  if (result.band) {
    const [low, high] = result.band.iteration_seconds;
    const {level, rows, group} = result.band;
    notes.push(`${100 * level}% band ${seconds(low, 3)} to ${seconds(high, 3)}, from ${rows} measured runs (${group})`);
  }
  if (ensemble) notes.push(`mean of ${ensemble.runs} jittered runs, p95 ${seconds(ensemble.p95)}`);
  notes.push(against('iteration_seconds', result.iteration_seconds, 'seconds'));
  add('iteration_seconds', 'seconds', notes.filter(Boolean).join('; '));
  add('tokens_per_second_per_gpu', 'rate');
  add('samples_per_second_per_gpu', 'rate');
  const mfu = shownMfu(result);
  add(mfu, 'share', result[mfu] > 1 ? 'over 100%: the seconds are not of this model on this GPU' : '');
  add('bubble_rate', 'share', [against('bubble_rate', result.bubble_rate, 'share'),
    `of makespan ${show(result.bubble_rate_makespan, 'share')}, over ideal ${show(result.bubble_over_ideal, 'share')}`]
    .filter(Boolean).join('; '));
  add('peak_activation_bytes', 'bytes');
  add('peak_memory_bytes', 'bytes', typeof result.peak_memory_bytes === 'number' ? memoryNote(result, run) : '');
  cards.push(costCard(String(run.document.pipesim.cost), run.calibration));
  return cards;
}

// The row with the best value of a column of those that fit into memory, or -1.
function bestRow(found) {
  const fits = columnNamed('fits');
  let best = -1;
  for (let row = 0; row < rowCount; ++row) {
    if (fits && fits.values[row] === 'no') continue;
    const value = found.values[row];
    if (typeof value === 'number' && (best < 0 || found.better * (value - found.values[best]) > 0)) best = row;
  }
  return best;
}

const kOfSweep = ['iteration_seconds', 'tokens_per_second_per_gpu', 'samples_per_second_per_gpu', 'microbatches_per_second_per_gpu', 'mfu', 'bubble_rate',
  'peak_activation_bytes', 'peak_memory_bytes'];

function cardsOfSweep() {
  const failed = report.sweep.failed[0]?.values.length ?? 0;
  const unfit = columnNamed('fits')?.values.filter(value => value === 'no').length ?? 0;
  const cards = [card('points', rowCount.toLocaleString('en-US'),
    (report.sweep.stopped ? 'of a sweep that was stopped: others are missing; ' : '') +
    (failed > 0 ? `and ${failed.toLocaleString('en-US')} that could not be run` : 'all could be run') +
    (unfit > 0 ? `; ${unfit.toLocaleString('en-US')} do not fit into memory and are not among the best` : '') +
    (sizesText ? `; of ${sizesText}` : ''))];
  for (const name of kOfSweep) {
    const found = columnNamed(name);
    const best = found && ranks(found) ? bestRow(found) : -1;
    if (best < 0) continue;
    const open = el('button', {type: 'button'}, nameOfRow(best));
    open.addEventListener('click', () => state.open(best));
    cards.push(card(`${found.better > 0 ? 'most' : 'least'} ${found.label}`, show(found.values[best], found.kind), open));
  }
  cards.push(costCard(report.sweep.cost, null));
  return cards;
}

// A row of a plan: what it takes, what the measured runs say of that, and against the baseline.
function cardsOfPlan(row) {
  const {plan, layout} = planned[row];
  const cards = [];
  const seen = layout.contended ? 'contended_iteration_seconds' : 'iteration_seconds';
  for (const name of ['days', 'price', seen, 'tokens_per_second_per_gpu', mfuOfPlan, 'bubble']) {
    const found = columnNamed(name);
    const value = found?.values[row] ?? null;
    if (value === null) continue;
    const band = bandOf(row, found);
    const digits = band ? sureDigits(row) : null;
    const ends = band ? `${100 * layout.band.level}% band ${band.map(end => showSure(end, found.kind, digits)).join(' to ')}` : '';
    const replay = name === 'contended_iteration_seconds' ? `by replay ${seconds(layout.iteration_seconds)}` : '';
    cards.push(card(found.label, showSure(value, found.kind, digits),
      [replay || against(name, value, found.kind), ends].filter(Boolean).join('; ')));
  }
  const free = layout.headroom_bytes;
  cards.push(card('peak memory', bytes(layout.peak_memory_bytes), [`${bytes(free)} of ${bytes(plan.memory_limit_bytes)} left`,
    against('peak_memory_bytes', layout.peak_memory_bytes, 'bytes')].filter(Boolean).join('; ')));
  cards.push(card('runs on', layout.runs_on.join(', ') || 'no framework as it stands', `limited by ${layout.limited_by}`, true));
  return cards;
}

// How many layouts the error of measured runs cannot tell from the first.
function tiesOf(plan) {
  const tied = plan.layouts.filter(each => each.tied_with_first).length;
  if (tied < 2) return '';
  return `${severalPlans ? nameOfPlan(plan) + ': ' : ''}${tied - 1} of ${plan.layouts.length - 1} other layouts cannot be told from the first`;
}

function cardsOfPage() {
  if (report.sweep) return cardsOfSweep();
  if (rowCount === 0) return [];
  return report.plan ? cardsOfPlan(state.row) : cardsOfResult(results[state.row]);
}

// The fewest rows of cards, filled evenly; one that is left over has a row of its width.
function evenColumns(count, width) {
  const kLeast = 170;
  const rows = Math.ceil(count / Math.max(1, Math.floor(width / kLeast)));
  return Math.max(1, Math.ceil(count / rows));
}

function startCards() {
  const place = () => {
    const box = byId('cards');
    const cards = [...box.children], across = evenColumns(cards.length, box.clientWidth);
    box.style.gridTemplateColumns = `repeat(${across}, minmax(0, 1fr))`;
    for (const each of cards) each.style.gridColumn = '';
    if (cards.length % across === 1) cards[cards.length - 1].style.gridColumn = '1 / -1';
  };
  const fill = () => { byId('cards').replaceChildren(...cardsOfPage()); place(); };
  new ResizeObserver(place).observe(byId('cards'));
  if (!report.sweep) state.on('row', fill);
  fill();
}
