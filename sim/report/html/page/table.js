// The rows as a sortable table. Only rows in sight are in the document.

const kRowHeight = 30;

// The order of columns: names, the numbers that decide, choices, then telling numbers. All others follow from kOthers on.
const kOthers = 100;
const kNames = ['point', 'idea', 'cluster', 'input'];
const kDecisive = ['days', 'contended_iteration_seconds', 'price', 'row', 'fits'];
const kTelling = ['mfu', 'mfu_causal', 'tokens_per_second_per_gpu', 'peak_memory_bytes', 'bubble_rate', 'bubble', 'peak_activation_bytes',
  'runs_on', 'samples_per_second_per_gpu', 'headroom_bytes'];

function rankOf({name}) {
  if (name === 'iteration_seconds') return columnNamed('contended_iteration_seconds') ? kOthers : 10;
  if (kNames.includes(name) || (name === 'schedule' && !report.plan)) return 0;
  const chosen = kChoice.includes(name) || kSizes.includes(name) || name === 'gpus' || report.sweep?.keys.includes(name);
  if (kDecisive.includes(name)) return 10 + kDecisive.indexOf(name);
  if (chosen) return 20;
  return kTelling.includes(name) ? 30 + kTelling.indexOf(name) : kOthers;
}

class ResultTable {
  constructor(container) {
    this.container = container;
    this.all = byId('all-columns');
    this.sorted = null;  // {column, descending}
    this.rows = [];
    this.width = 0;  // for which the columns were chosen
    const compared = rowCount > 1 ? columns.filter(ranks) : [];
    this.best = new Map(compared.map(each => [each, bestRow(each)]));
    this.body = el('tbody');
    this.headRow = el('tr');
    container.replaceChildren(el('table', {'aria-rowcount': rowCount + 1, 'aria-label': 'Results'},
      el('thead', {}, this.headRow), this.body));
    container.tabIndex = -1;
    container.addEventListener('scroll', () => this.fill());
    new ResizeObserver(() => container.clientWidth === this.width ? this.fill() : this.fit()).observe(container);
    this.all.addEventListener('change', () => this.fit());
    this.body.addEventListener('click', event => {
      const row = event.target.closest('tr[data-row]');
      if (row) state.open(Number(row.dataset.row));
    });
    this.body.addEventListener('keydown', event => this.walk(event));
    state.on('shown', () => this.sort());
    state.on('row', () => { this.reveal(); this.fill(); });
    this.use(columns);
    this.sort();
    this.fit();
    this.reveal();
  }

  use(chosen) {
    this.columns = chosen;
    this.heads = chosen.map(each => this.head(each));
    this.headRow.replaceChildren(...this.heads);
    this.tellOrder();
  }

  // Shows the columns that fit the width, by rank; with "all columns" checked, every column.
  fit() {
    this.width = this.container.clientWidth;
    this.use(columns);
    this.fill();
    const wide = new Map(columns.map((each, i) => [each, this.heads[i].offsetWidth]));
    const ranked = [...columns].sort((a, b) => rankOf(a) - rankOf(b) || columns.indexOf(a) - columns.indexOf(b));
    let room = this.width;
    const fitting = new Set(ranked.filter((each, i) => {
      if (i >= 2 && room < wide.get(each)) {
        if (rankOf(each) >= kOthers) room = 0;
        return false;
      }
      room -= wide.get(each);
      return true;
    }));
    this.all.parentElement.hidden = fitting.size === columns.length;
    if (this.all.checked || fitting.size === columns.length) return;
    this.use(columns.filter(each => fitting.has(each)));
    this.fill();
  }

  head(each) {
    const button = el('button', {type: 'button', title: each.name}, each.label);
    button.addEventListener('click', () => {
      // The first click sorts the better end first; the next reverses.
      const again = this.sorted?.column === each;
      this.sorted = {column: each, descending: again ? !this.sorted.descending : each.better > 0};
      this.container.scrollTop = 0;
      this.sort();
    });
    return el('th', {scope: 'col', className: each.text ? 'text' : ''}, button);
  }

  sort() {
    this.rows = [...state.shown];
    if (this.sorted) {
      const {column: {values, text}, descending} = this.sorted;
      const sign = descending ? -1 : 1;
      const compare = text ? (a, b) => String(a).localeCompare(String(b), 'en', {numeric: true}) : (a, b) => a - b;
      // Empty cells come last in both directions; ties keep the order of rows.
      this.rows.sort((a, b) => (values[a] === null) - (values[b] === null) ||
        (values[a] === null ? 0 : sign * compare(values[a], values[b])) || a - b);
    }
    this.tellOrder();
    this.fill();
  }

  tellOrder() {
    this.columns.forEach((each, i) => {
      const mine = this.sorted?.column === each;
      this.heads[i].setAttribute('aria-sort', !mine ? 'none' : this.sorted.descending ? 'descending' : 'ascending');
      this.heads[i].firstChild.textContent = each.label + (!mine ? '' : this.sorted.descending ? ' \u2193' : ' \u2191');
    });
  }

  // Fills in the rows in sight, between two empty rows as high as the rows above and below.
  fill() {
    const begin = Math.max(0, Math.floor(this.container.scrollTop / kRowHeight) - 10);
    const sight = Math.ceil((this.container.clientHeight || 420) / kRowHeight) + 20;
    const end = Math.min(this.rows.length, begin + sight);
    const focused = this.body.contains(document.activeElement);
    const gap = rows => el('tr', {'aria-hidden': 'true'}, el('td',
      {colSpan: this.columns.length, style: `height:${rows * kRowHeight}px;padding:0;border:0`}));
    const lines = begin > 0 ? [gap(begin)] : [];
    for (let i = begin; i < end; ++i) lines.push(this.line(this.rows[i], i));
    if (end < this.rows.length) lines.push(gap(this.rows.length - end));
    this.body.replaceChildren(...lines);
    if (focused) this.body.querySelector('tr[tabindex="0"]')?.focus({preventScroll: true});
  }

  line(row, i) {
    const chosen = row === state.row;
    // Tab reaches one row: the open one, else the first.
    const reached = chosen || (i === 0 && !this.rows.includes(state.row));
    return el('tr', {'data-row': row, 'aria-rowindex': i + 2, 'aria-selected': String(chosen), tabIndex: reached ? 0 : -1},
      ...this.columns.map(each => el('td', {
        className: (each.text ? 'text' : '') + (this.best.get(each) === row ? ' best' : ''),
        title: each.text ? String(each.values[row] ?? '') : '',
      }, shownIn(row, each, 1))));
  }

  walk(event) {
    const page = Math.floor(this.container.clientHeight / kRowHeight) - 2;
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rowCount, End: rowCount};
    if (!(event.key in steps) || this.rows.length === 0) return;
    event.preventDefault();
    const at = this.rows.indexOf(state.row) + steps[event.key];
    state.open(this.rows[Math.max(0, Math.min(at, this.rows.length - 1))]);
  }

  reveal() {
    const at = this.rows.indexOf(state.row);
    if (at < 0) return;
    const top = at * kRowHeight, high = this.container.clientHeight - kRowHeight;
    if (top < this.container.scrollTop) this.container.scrollTop = top;
    else if (top + kRowHeight > this.container.scrollTop + high) this.container.scrollTop = top + kRowHeight - high;
  }
}

// A plain table of columns {name or label, values}, its first `most` rows.
function plainTable(id, parts, most) {
  const count = parts[0]?.values.length ?? 0;
  const body = el('tbody');
  for (let row = 0; row < Math.min(count, most); ++row) {
    body.append(el('tr', {}, ...parts.map(each => el('td', {className: typeof each.values[row] === 'string' ? 'text' : ''},
      each.format ? each.format(each.values[row]) : show(each.values[row], 'number')))));
  }
  if (count > most) {
    body.append(el('tr', {}, el('td', {className: 'text', colSpan: parts.length}, `and ${count - most} more`)));
  }
  const heads = parts.map(each => el('th', {scope: 'col', className: typeof each.values[0] === 'string' ? 'plain text' : 'plain'},
    each.label ?? each.name));
  byId(id).replaceChildren(el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body));
}

function startTable() {
  if (rowCount === 0) {
    byId('table').replaceChildren(el('p', {className: 'quiet'}, 'No results.'));
  } else {
    new ResultTable(byId('table'));
  }
  byId('table-part').querySelector('.grow').hidden = rowCount < 2;
  byId('table-part').querySelector('.hint').hidden = rowCount < 2;
  startFailed();
}

// Points of a sweep, or schedules of a comparison, without a result.
function startFailed() {
  const refused = report.runs.flatMap(run => run.document.refused ?? []);
  const failed = report.sweep?.failed ?? [{name: 'schedule', values: refused.map(each => String(each.label ?? each.schedule))},
    {name: 'reason', values: refused.map(each => String(each.reason))}];
  const count = failed[0]?.values.length ?? 0;
  if (count === 0) return;
  byId('failed-part').hidden = false;
  byId('failed-title').textContent =
    `${counted(count, report.sweep ? 'point' : 'schedule')} that could not be run, and why`;
  plainTable('failed', failed, 1000);
}
