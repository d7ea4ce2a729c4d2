// Puts the parts together.

function startHeader() {
  const {runs, sweep} = report;
  const unique = values => [...new Set(values)].join(', ');
  const files = runs.map(run => run.file);
  const changed = runs.find(run => run.overrides.length > 0)?.overrides;
  if (report.plan) return startPlanHeader();
  byId('title').textContent = sweep ? `Sweep ${sweep.folder}`
    : files.length === 1 ? files[0] : `${files.length} inputs: ${files.join(', ')}`;
  byId('about').textContent = [
    counted(rowCount, 'result'),
    sizesText || null,
    sweep ? null : `engine ${unique(runs.map(run => run.document.pipesim.engine))}`,
    `costs ${sweep ? sweep.cost : unique(runs.map(run => run.document.pipesim.cost))}`,
    changed ? `changed: ${changed.join(' ')}` : null,
    `pipesim ${report.version}`].filter(Boolean).join(' \u00b7 ');
}

// What was asked, and what the search knows of what it did not run.
function startPlanHeader() {
  const {document: {plans, tokens}} = report.plan;
  const {model, gpus, global_batch_size: batch, seq_length: length} = plans[0] ?? {};
  byId('title').textContent = plans.length === 0 ? 'An empty plan'
    : `${model} on ${counted(gpus, 'GPU')} of ${plans.map(plan => plan.cluster).join(', ')}`;
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
