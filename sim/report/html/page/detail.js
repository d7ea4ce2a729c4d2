// The open result: its numbers, and the commands and texts that make it again.

// The scenario's own entry for a point's schedule: of a sweep's numbers schedules are the fastest.
function scheduleOfPoint(row) {
  const {schedules} = report.sweep;
  const name = String(columnNamed('schedule').values[row]);
  const entry = schedules[columnNamed('point').values[row] % schedules.length];
  return entry && entry.name === name ? entry.value : name;
}

// [command, words...] on one line.
const commandLine = parts => parts.map(part => quoted(String(part))).join(' ');

const kPointFile = 'scenario.yaml';

// Where parts of a schedule are swept, all schedules are run: the point's is one of them.
function overridesOfPoint(row) {
  const {keys} = report.sweep;
  const values = keys.map(key => `${key.replace(/^sweep\./, '')}=${columnNamed(key).values[row]}`);
  return keys.some(key => key.startsWith('schedule.')) ? values : [...values, `schedule=${scheduleOfPoint(row)}`];
}

const kLayoutFile = 'layout.yaml';

// Ways to run a planned row: a framework's configuration where the page has it, else the command that writes it.
function waysToRun(row) {
  const {layout} = planned[row];
  const {configurations = [], reason} = report.plan.rows[row];
  const command = report.plan.command ? [copyable('The plan', commandLine(['pipesim', ...report.plan.command]), true)] : [];
  if (!layout.scenario) return {commands: command, texts: []};
  const exported = layout.runs_on.map(name => copyable(`Its configuration for ${name}`, commandLine(['pipesim', 'export', kLayoutFile,
    '--format', name === 'megatron-bridge' ? name : 'megatron']), true));
  return {
    commands: [
      copyable(`Run it: save the scenario below as ${kLayoutFile}, then`, commandLine(['pipesim', 'run', kLayoutFile]), true),
      ...(configurations.length > 0 ? [] : exported), ...command],
    texts: [...configurations.map(({framework, text}) => copyable(`Configuration for ${framework}`, text)),
      copyable('The layout as a scenario', layout.scenario),
      ...(reason ? [el('p', {className: 'quiet'}, `Not run for this page: ${reason}`)] : [])],
  };
}

// Ways to make the row again: commands, then texts.
function waysBack(row) {
  if (report.plan) return waysToRun(row);
  if (report.sweep) {
    const overrides = overridesOfPoint(row);
    return {
      commands: [
        copyable(`Run it: save the scenario below as ${kPointFile}, then`,
          commandLine(['pipesim', 'run', kPointFile, ...overrides]), true),
        copyable('See its timeline',
          commandLine(['pipesim', 'report', kPointFile, ...overrides, '-o', 'point.html']), true)],
      texts: [copyable('The scenario without its sweep', report.sweep.scenario)],
    };
  }
  const {run} = results[row];
  const ours = run.text !== null;
  return {
    commands: ours ? [copyable('Run it', commandLine(['pipesim', 'run', run.file, ...run.overrides]), true)] : [],
    texts: [...(ours ? [copyable(run.file, run.text)] : []),
      copyable('The scenario as resolved', JSON.stringify(run.document.scenario, null, 1))],
  };
}

// The numbers that the table shows first, and folded the others.
function numbersOf(row) {
  const list = which => {
    const node = el('dl');
    for (const each of columns.filter(which)) {
      if (each.values[row] === null || each.name === 'point' || each.name === 'row') continue;
      node.append(el('dt', {title: each.name}, each.label), el('dd', {}, shownIn(row, each, 1)));
    }
    return node;
  };
  const isFirst = each => rankOf(each) < kOthers;
  const rest = list(each => !isFirst(each));
  return [list(isFirst), rest.childElementCount === 0 ? null : el('details', {}, el('summary', {}, 'More numbers'), rest)];
}

// Beside the chart the numbers and commands; without a chart the commands stand with the texts.
function startDetail() {
  const fill = () => {
    if (rowCount === 0) return byId('scenario').replaceChildren('No results.');
    const {commands, texts} = waysBack(state.row);
    const chart = !byId('explore').hidden;
    byId('detail').replaceChildren(el('h2', {}, nameOfRow(state.row)), ...numbersOf(state.row).filter(Boolean), ...(chart ? commands : []));
    byId('scenario').replaceChildren(...(chart ? [] : commands), ...texts);
  };
  state.on('row', fill);
  fill();
}

// Which result is open, for readers who do not use the chart or the table.
function startPicker() {
  const select = byId('result');
  if (report.sweep || rowCount < 2) return;
  byId('picker').hidden = false;
  if (report.plan) document.querySelector('#picker label').textContent = 'Layout';
  select.append(...Array.from({length: rowCount}, (_, row) => el('option', {value: String(row)}, nameOfRow(row))));
  select.value = String(state.row);
  select.addEventListener('change', () => state.open(Number(select.value)));
  state.on('row', () => { select.value = String(state.row); });
  byId('picker-note').textContent = 'its cards, timeline, memory and scenario stand below';
}
