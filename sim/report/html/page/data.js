// The data that the program put into the page: one row per result from any source.
//
// report.metrics: the table of metrics: {name, label, unit, better, band, of_all_gpus}.
// report.runs: {file, text, overrides, calibration, document, timelines}; the document is that of `pipesim run --json`.
// report.orders, where two runs are compared: {sentences, marked, tables}.
// report.sweep: {folder, stopped, scenario, cost, schedules, keys, columns, failed}.
// report.plan: {file, command, document, rows}; the document is that of `pipesim plan --json`, and a row that was run
// again has {timeline, devices, configurations, reason}.
// report.run, of a live page alone: promises these of a row.

const kByName = new Map(report.metrics.map(each => [each.name, each]));
const metricNamed = name => kByName.get(name);

// How values of a metric's unit are shown (sim/report/metrics/table.h).
const kKinds = {s: 'seconds', B: 'bytes', share: 'share', '1/s': 'rate', 'TFLOP/s': 'rate', flag: 'flag', days: 'rate',
  'GPU-hours': 'rate', money: 'money'};
const kindOf = name => kKinds[metricNamed(name)?.unit] ?? (name === 'tied_with_first' ? 'flag' : 'number');

// Labels of columns that are no metrics.
const kLabels = {
  tensor_model_parallel_size: 'tp', context_parallel_size: 'cp', expert_model_parallel_size: 'ep',
  expert_tensor_parallel_size: 'etp', pipeline_model_parallel_size: 'pp', virtual_pipeline_model_parallel_size: 'vpp',
  data_parallel_size: 'dp', micro_batch_size: 'mbs', tied_with_first: 'tied',
};

// The label of a swept key is its last word, or that word's short name; the hint has the whole name. `sweep.offload` is
// the file's value, `offload` the point's.
function labelOf(name) {
  if (name.startsWith('sweep.')) return `${name.slice('sweep.'.length)}, asked`;
  const last = name.slice(name.lastIndexOf('.') + 1);
  if (last !== name) return kLabels[last] ?? last;
  return metricNamed(name)?.label ?? kLabels[name] ?? name.replaceAll('_', ' ');
}

// 1: more is better, -1: less is better, 0: neither.
const betterOf = name => metricNamed(name)?.better ?? 0;

// {name, label, kind, better, text, values}, a value per row.
function column(name, values) {
  const text = values.some(value => typeof value === 'string');
  return {name, label: labelOf(name), kind: text ? 'text' : kindOf(name), better: text ? 0 : betterOf(name), text, values};
}

// The numbers that people compare first come first.
const kMetrics = ['iteration_seconds', 'tokens_per_second_per_gpu', 'samples_per_second_per_gpu', 'mfu', 'bubble_rate',
  'peak_activation_bytes', 'peak_memory_bytes', 'bubble_rate_makespan', 'bubble_over_ideal', 'samples_per_second',
  'model_tflops_per_gpu', 'mfu_causal', 'model_tflops_per_gpu_causal', 'hfu'];

// Chosen besides the schedule; shown where rows differ in it.
const kChoice = ['options', 'recompute', 'offload', 'memory_limit'];
const differ = values => new Set(values).size > 1;

// At long sequences the causal MFU, as the tables of the command line.
const shownMfu = each => each.mfu > 0 && each.mfu >= 1.2 * each.mfu_causal ? 'mfu_causal' : 'mfu';

// Rows of a plan: {plan, layout, place}, 0 being the baseline's place.
const planned = (report.plan?.document.plans ?? []).flatMap(plan => [
  ...plan.layouts.map((layout, i) => ({plan, layout, place: i + 1})),
  ...(plan.baseline ? [{plan, layout: plan.baseline, place: 0}] : [])]);
// A cluster, with GPUs and precision where these tell plans apart.
const nameOfPlan = plan => plan.label ?? plan.cluster;
const severalPlans = (report.plan?.document.plans.length ?? 0) > 1;

// A plan's row in the form of a result of `pipesim run`.
function resultOfPlan({plan, layout}, row) {
  const {timeline, devices} = report.plan.rows[row];
  const run = {document: {pipesim: report.plan.document.pipesim, scenario: {memory: {capacity_bytes: plan.memory_limit_bytes}}}};
  return {run, result: {...layout, devices: devices ?? []}, timeline: timeline ?? null};
}

// Results: {run, result, timeline}, in the order of the inputs; none of a sweep.
const results = report.plan ? planned.map(resultOfPlan) : report.runs.flatMap(run => run.document.results.map(
  (result, i) => ({run, result, timeline: run.timelines[i] ?? null})));

function columnsOfRuns() {
  const columns = [];
  if (differ(report.runs.map(run => run.file))) columns.push(column('input', results.map(each => each.run.file)));
  columns.push(column('schedule', results.map(each => String(each.result.schedule))));
  for (const name of [...kChoice, 'gpus']) {
    const values = results.map(({result}) => result[name] ?? null);
    if (differ(values)) columns.push(column(name, values));
  }
  for (const name of kMetrics) {
    const values = results.map(({result}) => typeof result[name] === 'number' ? result[name] : null);
    if (values.some(value => value !== null)) columns.push(column(name, values));
  }
  const fits = results.map(({result}) => result.fits ?? null);
  if (fits.some(value => value !== null)) columns.push(column('fits', fits));
  return columns;
}

// The columns of a sweep that say anything: a metric that applies to no point has no column, nor has a choice that all share.
function columnsOfSweep() {
  const {columns} = report.sweep;
  const known = name => columns.find(each => each.name === name)?.values.some(value => value !== null);
  const sizesDiffer = differ(columns.find(each => each.name === 'gpus')?.values ?? []);
  // A choice is not shown beside the key that asks for just that.
  const isAsked = ({name, values}) => {
    const asked = columns.find(each => each.name === `sweep.${name}`);
    return asked !== undefined && values.every((value, row) => value === asked.values[row]);
  };
  const says = ({name, values}) => {
    if (values.length === 0 || name === 'schedule') return true;
    if (kChoice.includes(name) || name === 'gpus') return differ(values) && !isAsked({name, values});
    if (name === 'microbatches_per_second_per_gpu') return sizesDiffer && !known('samples_per_second_per_gpu');
    return known(name);
  };
  const shown = columns.filter(says);
  return shown.map(({name, values}) => {
    const key = name.replace(/^sweep\./, '');
    const alone = key !== name && !shown.some(each => each.name === key);
    return {...column(name, values), ...(alone ? {label: key.replaceAll('_', ' ')} : {})};
  });
}

// Sizes, then numbers, each where a layout has one that says anything.
const kSizes = ['tensor_model_parallel_size', 'context_parallel_size', 'expert_model_parallel_size',
  'expert_tensor_parallel_size', 'pipeline_model_parallel_size', 'virtual_pipeline_model_parallel_size', 'data_parallel_size',
  'micro_batch_size'];
const mfuOfPlan = shownMfu(planned[0]?.layout ?? {});
const kPlanned = ['iteration_seconds', 'contended_iteration_seconds', 'tokens_per_second_per_gpu', mfuOfPlan, 'peak_memory_bytes',
  'headroom_bytes', 'host_memory_bytes', 'bubble', 'days', 'gpu_hours', 'price'];

function columnsOfPlan() {
  const of = (name, value) => column(name, planned.map(value));
  const numbers = (names, says) => names
    .map(name => of(name, ({layout}) => (name === 'contended_iteration_seconds' ? layout.contended?.iteration_seconds : layout[name]) ?? null))
    .filter(each => each.values.some(says));
  return [
    ...(severalPlans ? [of('cluster', ({plan}) => nameOfPlan(plan))] : []),
    of('row', ({place}) => place),
    ...(planned.some(({layout}) => layout.idea) ? [of('idea', ({layout, place}) => place > 0 ? layout.idea ?? '' : nameOfBaseline(layout))] : []),
    of('schedule', ({layout}) => layout.label ?? layout.schedule),
    ...numbers(kSizes.filter(name => !name.startsWith('expert_')), value => value !== null),
    ...numbers(kSizes.filter(name => name.startsWith('expert_')), value => value > 1),
    ...numbers(kPlanned, value => value !== null),
    of('tied_with_first', ({layout}) => typeof layout.tied_with_first === 'boolean' ? Number(layout.tied_with_first) : null),
    of('runs_on', ({layout}) => layout.runs_on.join('+') || '-'),
    of('limited_by', ({layout}) => layout.limited_by),
  ];
}

const columns = report.plan ? columnsOfPlan() : report.sweep ? columnsOfSweep() : columnsOfRuns();
const rowCount = columns.length > 0 ? columns[0].values.length : 0;
const columnNamed = name => columns.find(each => each.name === name);

// Rows that use different numbers of GPUs are ranked by what one GPU does: others only say who has more of them.
const gpuCounts = [...new Set(columnNamed('gpus')?.values ?? [])].filter(value => value !== null).sort((a, b) => a - b);
const ranks = ({name, better}) => better !== 0 && !(gpuCounts.length > 1 && metricNamed(name)?.of_all_gpus);
const sizesText = gpuCounts.length > 1 ? `${gpuCounts[0]} to ${gpuCounts[gpuCounts.length - 1]} GPUs: ranked per GPU` : '';

// Inputs by their last name, where that tells them apart.
const lastName = path => path.slice(path.lastIndexOf('/') + 1);
const inputsDiffer = new Set(report.runs.map(run => lastName(run.file))).size === report.runs.length;
const nameOfInput = run => inputsDiffer ? lastName(run.file) : run.file;

// The row that a row's values are compared with: -1 where there is none, or it is that row.
function rowToCompare(row) {
  const other = report.plan ? planned.findIndex(({plan, place}) => plan === planned[row]?.plan && place === 0) : 0;
  return other === row ? -1 : other;
}

// The seconds that a row is expected to take, with contention where that is known.
const expectedSeconds = row => columnNamed('contended_iteration_seconds')?.values[row] ?? columnNamed('iteration_seconds').values[row];

// A value's band: [low, high], or null where the band does not cover the column.
function bandOf(row, {name, values}) {
  const band = results[row]?.result.band;
  if (!band || typeof values[row] !== 'number') return null;
  const [low, high] = band.iteration_seconds.map(end => end / expectedSeconds(row));
  const rule = metricNamed(name)?.band;
  if (rule === 'seconds') return [values[row] * low, values[row] * high];
  return rule === 'rate' ? [values[row] / high, values[row] / low] : null;
}

// Memory of a GPU, by cluster where there are several: [{size, name}].
function memoryLimits() {
  const known = report.plan ? report.plan.document.plans.map(plan => [plan.memory_limit_bytes, nameOfPlan(plan)])
    : report.sweep ? (columnNamed('capacity_bytes')?.values ?? []).map(size => [size, ''])
    : report.runs.map(run => [run.document.scenario?.memory?.capacity_bytes, nameOfInput(run)]);
  const sizes = [...new Set(known.map(([size]) => size))].filter(size => typeof size === 'number');
  return sizes.map(size => {
    const names = sizes.length > 1 && !report.sweep ? `${known.filter(each => each[0] === size).map(each => each[1]).join(', ')}: ` : '';
    return {size, name: `${names}${bytes(size)}`};
  });
}

// Significant digits of a row's uncertain numbers: one more than half the width of its band leaves sure, 2 to 5.
function sureDigits(row) {
  const ends = results[row]?.result.band?.iteration_seconds;
  if (!ends) return null;
  const half = (ends[1] - ends[0]) / 2 / expectedSeconds(row);
  return Math.min(5, Math.max(2, 1 + Math.ceil(-Math.log10(half) - 1e-9)));
}

// A value in the digits that its band leaves sure, one more where rows are compared.
function shownIn(row, each, more = 0) {
  const digits = ['seconds', 'rate'].includes(metricNamed(each.name)?.band) ? sureDigits(row) : null;
  return showSure(each.values[row], each.kind, digits === null ? null : digits + more);
}

// Row 0, as the table of `pipesim plan` names it.
function nameOfBaseline({file, run}) {
  if (file) return file.split('/').pop();
  return run ? 'published recipe' : 'baseline';
}

function nameOfPlanned({plan, layout, place}) {
  return `${severalPlans ? nameOfPlan(plan) + ' ' : ''}${place > 0 ? place : nameOfBaseline(layout)}: ${layout.idea || (layout.label ?? layout.schedule)}`;
}

function nameOfRow(row) {
  if (report.plan) return nameOfPlanned(planned[row]);
  if (report.sweep) return `point ${columnNamed('point').values[row]}: ${scheduleOf(row)}`;
  const {run, result} = results[row];
  const label = String(result.label ?? result.schedule);
  if (report.orders) return `${'AB'[row]}: ${label}`;
  return report.runs.length > 1 ? `${label} in ${nameOfInput(run)}` : label;
}

// The schedule of a sweep's point, with what was chosen where points differ in it.
function scheduleOf(row) {
  const chosen = kChoice.map(name => columnNamed(name) ?? columnNamed(`sweep.${name}`)).filter(each => each && each.values[row] !== null && each.values[row] !== 'none')
    .map(each => (each.name === 'options' ? '' : `${each.label} `) + each.values[row]);
  const schedule = String(columnNamed('schedule').values[row]);
  return chosen.length > 0 ? `${schedule} (${chosen.join(', ')})` : schedule;
}

// Results and points are judged first by the first of these that they have and that ranks them.
const kOpening = ['mfu', 'tokens_per_second_per_gpu', 'samples_per_second_per_gpu', 'microbatches_per_second_per_gpu',
  'samples_per_second', 'iteration_seconds'].filter(name => columnNamed(name) && ranks(columnNamed(name)));

// The row that a page opens on: the best that fits, of a plan the fastest of all.
function firstRow() {
  if (!report.plan) return kOpening.length > 0 ? Math.max(0, bestRow(columnNamed(kOpening[0]))) : 0;
  const fastest = planned.map((_, row) => row).filter(row => planned[row].place === 1)
    .sort((a, b) => expectedSeconds(a) - expectedSeconds(b) || a - b);
  return fastest[0] ?? 0;
}

// Which row is open and which pass the filter; the parts of the page listen.
const state = {
  row: firstRow(),
  shown: Array.from({length: rowCount}, (_, row) => row),
  listeners: {row: [], shown: [], theme: [], compared: []},
  on(what, listener) { this.listeners[what].push(listener); },
  tell(what) { for (const listener of this.listeners[what]) listener(); },
  open(row) {
    if (row === this.row || row < 0 || row >= rowCount) return;
    this.row = row;
    this.tell('row');
  },
};

// Base64 to 32-bit numbers, as they were written: the least significant byte first.
function words(base64, type = Uint32Array) {
  const binary = atob(base64);
  const raw = new Uint8Array(binary.length);
  for (let i = 0; i < raw.length; ++i) raw[i] = binary.charCodeAt(i);
  return new type(raw.buffer);
}

const kWhole = 4294967295;  // times are 32-bit fractions of the timeline's seconds
const kNone = 4294967295;

// Steps of a device's compute that are no passes; colours as of the bubble's causes.
const kSteps = {
  optimizer: {meaning: 'step', chunk: 0, fill: '#5b2a7c', ink: '#ffffff'},
  reduction: {meaning: 'of gradients', chunk: 0, fill: '#f5c95f', ink: '#15181d'},
};

// Messages, copies and collectives as typed arrays; null where there are none.
function decodedBeside(beside) {
  if (!beside || beside.classes.length === 0) return null;
  return {classes: beside.classes, first: beside.first, start: words(beside.start), length: words(beside.length),
    ofClass: words(beside.class), microbatch: words(beside.microbatch)};
}

// A timeline as typed arrays, or null where there is none.
function decoded(timeline) {
  if (!timeline || timeline.left_out !== undefined) return null;
  const classes = timeline.classes.map(parts => parts.map(part => part.fill ? part : {...part, ...kSteps[part.kind]}));
  const data = {
    seconds: timeline.seconds, splits: timeline.splits, classes, first: timeline.first,
    beside: decodedBeside(timeline.beside),
    start: words(timeline.start), length: words(timeline.length), microbatch: words(timeline.microbatch),
    ofClass: words(timeline.class), second: timeline.second ? words(timeline.second) : null,
    critical: words(timeline.critical), memory: null,
  };
  data.devices = data.first.length - 1;
  data.passes = data.microbatch.reduce((count, each) => count + (each === kNone ? 0 : 1), 0);
  // A class's colour in a crowd: the mean of its halves.
  data.rgb = data.classes.map(parts => [0, 1, 2].map(
    i => parts.reduce((sum, {fill}) => sum + rgbOf(fill)[i], 0) / parts.length));
  data.isCritical = new Uint8Array(data.start.length);
  for (const pass of data.critical) data.isCritical[pass] = 1;
  if (timeline.memory) {
    const {first, at, bytes: level} = timeline.memory;
    data.memory = {first, at: words(at), bytes: words(level, Float32Array)};
  }
  return data;
}

// The first of sorted array[from..to) that is greater than `value`.
function upperBound(array, value, from, to) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (array[middle] > value) to = middle;
    else from = middle + 1;
  }
  return from;
}
