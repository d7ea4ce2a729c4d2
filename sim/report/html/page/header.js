// The head of a page: the question as its title, the answer in a sentence, and what was read.

function showHead(title, answer, about) {
  byId('title').textContent = title;
  document.title = `${title} - pipesim`;
  byId('answer').textContent = answer;
  byId('answer').hidden = answer === '';
  byId('about').textContent = [...about, `pipesim ${report.version}`].filter(Boolean).join(' \u00b7 ');
}

const axisText = each => each.label.replace(', asked', '');
const unique = values => [...new Set(values)];

// "24 points over num_microbatches, schedule": what was asked, not where it lies.
function titleOfSweep() {
  const axes = columns.filter(each => (each.name.includes('.') || each.name === 'schedule') && differ(each.values));
  const over = axes.length > 0 ? ` over ${axes.map(axisText).join(', ')}` : '';
  return `${counted(rowCount, 'point')}${over}`;
}

// "llama3-70b on 256 h100-sxm", "8 devices, 24 microbatches".
function subjectOf({document: {scenario, results}}) {
  const {model, cost, parallel, batch} = scenario ?? {};
  const gpus = results[0]?.gpus;
  if (model?.name) return `${model.name} on ${typeof gpus === 'number' ? counted(gpus, cost?.gpu ? `${cost.gpu} GPU` : 'GPU') : 'GPUs'}`;
  return parallel && batch ? `${counted(parallel.pipeline_model_parallel_size, 'device')}, ${counted(batch.num_microbatches, 'microbatch')}` : '';
}

function titleOfRuns() {
  const labels = unique(results.map(({result}) => String(result.label ?? result.schedule)));
  const what = report.orders ? results.map(({result}) => String(result.label ?? result.schedule)).join(' and ')
    : labels.length === 1 ? labels[0] : counted(labels.length, 'schedule');
  const subjects = unique(report.runs.map(subjectOf));
  if (subjects.length > 1) return `${what} in ${counted(report.runs.length, 'scenario')}`;
  return subjects[0] ? `${what}: ${subjects[0]}` : what;
}

// The memory of the fullest GPU, and its limit where that is known.
function memoryText(row) {
  const peak = columnNamed('peak_memory_bytes')?.values[row];
  if (typeof peak !== 'number') return '';
  const limit = results[row]?.run.document.scenario?.memory?.capacity_bytes;
  return `; ${bytes(peak)}${typeof limit === 'number' ? ` of ${bytes(limit)}` : ''} on the fullest GPU`;
}

// "seq_length 4096, schedule zb-h1": what was swept, of a point.
const pointText = row => swept().filter(each => each.values[row] !== null)
  .map(each => `${axisText(each)} ${each.values[row]}`).join(', ');

// "Best of 5 results: zb-h2; MFU 41.2%, 1.24 s an iteration; 51.8 GiB of 80 GiB on the fullest GPU."
function answerOfRows() {
  const found = kOpening.length > 0 ? columnNamed(kOpening[0]) : null;
  const best = found ? bestRow(found) : -1;
  if (best < 0) return '';
  const of = rowCount > 1 ? `Best of ${counted(rowCount, report.sweep ? 'point' : 'result')}: ` : '';
  const brief = each => showSure(each.values[best], each.kind, sureDigits(best) ?? 3);
  const rate = found.name === 'iteration_seconds' ? '' : `${found.label} ${brief(found)}, `;
  const name = report.sweep ? pointText(best) : nameOfRow(best);
  return `${of}${name}; ${rate}${brief(columnNamed('iteration_seconds'))} an iteration${memoryText(best)}.`;
}

function startRunsHeader() {
  const {runs, orders} = report;
  const changed = unique(runs.flatMap(run => run.overrides));
  showHead(titleOfRuns(), orders ? orders.sentences[0] : answerOfRows(), [
    unique(runs.map(run => run.file)).join(', '), sizesText,
    `engine ${unique(runs.map(run => run.document.pipesim.engine)).join(', ')}`,
    `costs ${unique(runs.map(run => run.document.pipesim.cost)).join(', ')}`,
    changed.length > 0 ? `changed: ${changed.join(' ')}` : '']);
}

// The question, and the search's account of layouts it did not run.
function startPlanHeader() {
  const {document: {answer, plans, tokens}} = report.plan;
  const {model, gpus, global_batch_size: batch, seq_length: length} = plans[0] ?? {};
  const asked = plans.map(nameOfPlan).join(', ');
  const alike = plans.every(plan => plan.gpus === gpus);
  const title = plans.length === 0 ? 'An empty plan'
    : alike ? `${model} on ${counted(gpus, 'GPU')} of ${asked}` : `${model} on ${asked}`;
  showHead(title, answer ?? '', [
    plans.some(plan => plan.stopped) ? 'INCOMPLETE: the search was ended early' : null,
    counted(rowCount, 'layout'), `${batch} samples of ${length} tokens`,
    typeof tokens === 'number' ? `${withUnit(tokens, kTokenUnits)} tokens in all` : null, ...plans.map(tiesOf)]);
}

function startHeader() {
  if (report.plan) return startPlanHeader();
  if (!report.sweep) return startRunsHeader();
  showHead(titleOfSweep(), answerOfRows(), [sizesText, `in ${report.sweep.folder}`, `costs ${report.sweep.cost}`]);
}
