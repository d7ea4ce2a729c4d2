// Puts the parts together.

function startTheme() {
  const button = byId('theme');
  const apply = theme => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === 'dark' ? 'Light' : 'Dark';
    readColours();
    state.tell('theme');
  };
  button.addEventListener('click', () => apply(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  apply(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function startHeader() {
  const {runs, sweep} = report;
  const unique = values => [...new Set(values)].join(', ');
  byId('title').textContent = sweep ? `Sweep ${sweep.folder}` : runs.length === 1 ? runs[0].file : `${runs.length} inputs: ${runs.map(run => run.file).join(', ')}`;
  byId('about').textContent = [
    counted(rowCount, 'result'),
    sweep ? null : `engine ${unique(runs.map(run => run.document.pipesim.engine))}`,
    `costs ${sweep ? sweep.cost : unique(runs.map(run => run.document.pipesim.cost))}`,
    sweep || !runs.some(run => run.overrides.length > 0) ? null : `changed: ${runs.find(run => run.overrides.length > 0).overrides.join(' ')}`,
    `pipesim ${report.version}`].filter(Boolean).join(' \u00b7 ');
}

startTheme();
startHeader();
startPicker();
startCards();
const pareto = startPareto();
startDetail();
startTable();
startFilter();
const timeline = startTimeline();
startMemory(timeline);
startBubble();
