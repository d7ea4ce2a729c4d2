// The open result: its numbers, and the commands and texts that make it again.

// The scenario's own entry for a point's schedule: of a sweep's numbers schedules are the fastest.
function scheduleOfPoint(row) {
  const {schedules} = report.sweep;
  const label = String(columnNamed('schedule').values[row]);
  const entry = schedules[columnNamed('point').values[row] % schedules.length];
  return entry && (label === entry.name || label.startsWith(entry.name + ' ')) ? entry.value : label;
}

// [command, words...] on one line.
const commandLine = parts => parts.map(part => quoted(String(part))).join(' ');

const kPointFile = 'scenario.yaml';

// Where parts of a schedule are swept, all schedules are run: the point's is one of them.
function overridesOfPoint(row) {
  const {keys} = report.sweep;
  const values = keys.map(key => `${key}=${columnNamed(key).values[row]}`);
  return keys.some(key => key.startsWith('schedule.')) ? values : [...values, `schedule=${scheduleOfPoint(row)}`];
}

// What makes the row again: commands, then texts.
function waysBack(row) {
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

function numbersOf(row) {
  const list = el('dl');
  for (const each of columns) {
    const value = each.values[row];
    if (value === null || each.name === 'point') continue;
    list.append(el('dt', {title: each.name}, each.label), el('dd', {}, show(value, each.kind)));
  }
  return list;
}

// Beside the chart the numbers and commands; without a chart the commands stand with the texts.
function startDetail() {
  const fill = () => {
    if (rowCount === 0) return byId('scenario').replaceChildren('No results.');
    const {commands, texts} = waysBack(state.row);
    const chart = !byId('explore').hidden;
    byId('detail').replaceChildren(el('h2', {}, nameOfRow(state.row)), numbersOf(state.row), ...(chart ? commands : []));
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
  select.append(...Array.from({length: rowCount}, (_, row) => el('option', {value: String(row)}, nameOfRow(row))));
  select.addEventListener('change', () => state.open(Number(select.value)));
  state.on('row', () => { select.value = String(state.row); });
  byId('picker-note').textContent = 'its cards, timeline, memory and scenario stand below';
}
