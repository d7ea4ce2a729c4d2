// Puts the parts together.

// The answer in a sentence stands before all else.
function showAnswer(text) {
  byId('answer').textContent = text;
  byId('answer').hidden = text === '';
}

// "24 points over num_microbatches, schedule": what was asked, not where it lies.
function titleOfSweep() {
  const varies = each => new Set(each.values).size > 1;
  const axes = columns.filter(each => (each.name.includes('.') || each.name === 'schedule') && varies(each));
  const over = axes.length > 0 ? ` over ${axes.map(each => each.label.replace(', asked', '')).join(', ')}` : '';
  return `${counted(rowCount, 'point')}${over}`;
}

function answerOfSweep() {
  const found = kOpening.length > 0 ? columnNamed(kOpening[0]) : null;
  const best = found ? bestRow(found) : -1;
  if (best < 0) return '';
  const memory = columnNamed('peak_memory_bytes')?.values[best];
  return `Best of ${counted(rowCount, 'point')}: ${nameOfRow(best)}, ${found.label} ${show(found.values[best], found.kind)}, ` +
    `${seconds(columnNamed('iteration_seconds').values[best], 3)} an iteration` +
    `${typeof memory === 'number' ? `; ${bytes(memory)} on the fullest GPU` : ''}.`;
}

function startHeader() {
  const {runs, sweep} = report;
  const unique = values => [...new Set(values)].join(', ');
  const files = runs.map(run => run.file);
  const changed = runs.find(run => run.overrides.length > 0)?.overrides;
  if (report.plan) return startPlanHeader();
  if (sweep) showAnswer(answerOfSweep());
  byId('title').textContent = sweep ? titleOfSweep()
    : files.length === 1 ? files[0] : `${files.length} inputs: ${files.join(', ')}`;
  byId('about').textContent = [
    counted(rowCount, 'result'),
    sizesText || null,
    sweep ? `in ${sweep.folder}` : null,
    sweep ? null : `engine ${unique(runs.map(run => run.document.pipesim.engine))}`,
    `costs ${sweep ? sweep.cost : unique(runs.map(run => run.document.pipesim.cost))}`,
    changed ? `changed: ${changed.join(' ')}` : null,
    `pipesim ${report.version}`].filter(Boolean).join(' \u00b7 ');
}

// The head of a plan: the question, and the search's account of layouts it did not run.
function startPlanHeader() {
  const {document: {answer, plans, tokens}} = report.plan;
  showAnswer(answer ?? '');
  const {model, gpus, global_batch_size: batch, seq_length: length} = plans[0] ?? {};
  const asked = plans.map(nameOfPlan).join(', ');
  const alike = plans.every(plan => plan.gpus === gpus);
  byId('title').textContent = plans.length === 0 ? 'An empty plan'
    : alike ? `${model} on ${counted(gpus, 'GPU')} of ${asked}` : `${model} on ${asked}`;
  byId('about').textContent = [
    plans.some(plan => plan.stopped) ? 'INCOMPLETE: the search was ended early' : null,
    counted(rowCount, 'layout'), `${batch} samples of ${length} tokens`,
    typeof tokens === 'number' ? `${withUnit(tokens, kTokenUnits)} tokens in all` : null, ...plans.map(tiesOf).filter(Boolean),
    `pipesim ${report.version}`].filter(Boolean).join(' \u00b7 ');
}

startTheme();
startHeader();
startPicker();
startCards();
const pareto = startPareto();
const heat = startHeat();
startDetail();
startTable();
startFilter();
const timeline = startTimeline();
startMemory(timeline);
startBubble();
const difference = startDifference();
const whatIf = startWhatIf();

// A live page runs a row when it is first opened or compared.
async function runRow(row) {
  const kept = report.plan.rows[row];
  if (kept.asked) return;
  kept.asked = true;
  try {
    Object.assign(kept, await report.run(row));
  } catch (error) {
    kept.reason = error.message;
  }
  results[row] = resultOfPlan(planned[row], row);
  if (row === state.row) state.tell('row');
  difference?.showSides();
}

function runShown() {
  const rows = difference ? [Number(difference.from.value), Number(difference.to.value)] : [];
  for (const row of [state.row, ...rows]) runRow(row);
}

if (report.run) {
  state.on('row', runShown);
  state.on('compared', runShown);
  runShown();
}
