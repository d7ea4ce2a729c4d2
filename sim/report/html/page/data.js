// What the program put into the page: one row per result, whatever it came from.
//
// report.runs: {file, text, overrides, calibration, document, timelines}, a document being that of
// `pipesim run --json`. report.sweep: {folder, stopped, scenario, cost, schedules, keys, columns, failed}.

const report = JSON.parse(byId('data').textContent);

// {name, label, kind, better, text, values}, a value per row.
function column(name, values) {
  const text = values.some(value => typeof value === 'string');
  return {name, label: labelOf(name), kind: text ? 'text' : kindOf(name), better: text ? 0 : betterOf(name), text, values};
}

// What one compares first stands first.
const kMetrics = ['iteration_seconds', 'tokens_per_second_per_gpu', 'samples_per_second_per_gpu', 'mfu', 'bubble_rate',
  'peak_activation_bytes', 'peak_memory_bytes', 'bubble_rate_makespan', 'bubble_over_ideal', 'samples_per_second',
  'model_tflops_per_gpu', 'mfu_causal', 'model_tflops_per_gpu_causal', 'hfu'];

// Results of runs: {run, result, timeline}, in the order of the inputs.
const results = report.runs.flatMap(run => run.document.results.map(
  (result, i) => ({run, result, timeline: run.timelines[i] ?? null})));

function columnsOfRuns() {
  const columns = [];
  if (report.runs.length > 1) columns.push(column('input', results.map(each => each.run.file)));
  columns.push(column('schedule', results.map(each => String(each.result.schedule))));
  for (const name of kMetrics) {
    const values = results.map(({result}) => typeof result[name] === 'number' ? result[name] : null);
    if (values.some(value => value !== null)) columns.push(column(name, values));
  }
  const fits = results.map(({result}) => typeof result.fits === 'boolean' ? Number(result.fits) : null);
  if (fits.some(value => value !== null)) columns.push(column('fits_capacity', fits));
  return columns;
}

// Of a sweep all that say anything: a metric that applies to no point has no column.
const columnsOfSweep = () => report.sweep.columns
  .filter(({name, values}) => values.length === 0 || name === 'schedule' || values.some(value => value !== null))
  .map(({name, values}) => column(name, values));

const columns = report.sweep ? columnsOfSweep() : columnsOfRuns();
const rowCount = columns.length > 0 ? columns[0].values.length : 0;
const columnNamed = name => columns.find(each => each.name === name);

// Inputs by their last name, where that tells them apart.
const lastName = path => path.slice(path.lastIndexOf('/') + 1);
const inputsDiffer = new Set(report.runs.map(run => lastName(run.file))).size === report.runs.length;
const nameOfInput = run => inputsDiffer ? lastName(run.file) : run.file;

function nameOfRow(row) {
  const schedule = String(columnNamed('schedule')?.values[row] ?? '');
  if (report.sweep) return `point ${columnNamed('point').values[row]}: ${schedule}`;
  return report.runs.length > 1 ? `${schedule} in ${nameOfInput(results[row].run)}` : schedule;
}

// Which row is open and which pass the filter; the parts of the page listen.
const state = {
  row: 0,
  shown: Array.from({length: rowCount}, (_, row) => row),
  listeners: {row: [], shown: [], theme: []},
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

// A timeline as typed arrays, or null where there is none.
function decoded(timeline) {
  if (!timeline || timeline.left_out !== undefined) return null;
  const data = {
    seconds: timeline.seconds, splits: timeline.splits, classes: timeline.classes, first: timeline.first,
    start: words(timeline.start), length: words(timeline.length), microbatch: words(timeline.microbatch),
    ofClass: words(timeline.class), second: timeline.second ? words(timeline.second) : null,
    critical: words(timeline.critical), memory: null,
  };
  data.devices = data.first.length - 1;
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
