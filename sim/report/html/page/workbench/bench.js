// One schedule on the page: its controls, what was changed, and what would follow from a change that is tried.

// `value` as a person would type it: at most 7 digits, without separators.
const typed = value => String(Number(value.toPrecision(7)));
const kDurationUnit = 1e-3;
const kGiB = 2 ** 30;

class Bench {
  // `changed()` is called whenever what the page shows of it may be other.
  constructor(name, number, changed) {
    this.name = name;
    this.changed = changed;
    this.build();
    this.board = new Board(this, this.canvas);
    this.open(number);
  }

  open(number) {
    this.schedule = given.schedules[number];
    this.schedules.value = String(number);
    this.history = new History(plannedState(this.schedule, this.schedule.microbatches));
    this.planned = evaluate(this.state.model, this.state.order);
    this.taken = null;  // the text of a pass
    this.stage.replaceChildren(el('option', {value: ''}, 'all stages'),
      ...this.state.model.stages.map((_, vs) => el('option', {value: String(vs)}, `stage ${vs}`)));
    this.fillLegend();
    this.notes.textContent = this.schedule.notes.map(note => `Shown ${note}.`).join(' ');
    this.notes.hidden = this.schedule.notes.length === 0;
    this.refresh();
    this.say(`${this.schedule.label} as it is planned`);
  }

  get state() { return this.history.state; }
  get shown() { return this.candidate ?? {state: this.state, result: this.result}; }

  // ---- controls ----

  button(text, action, label = text) {
    const button = el('button', {type: 'button', 'aria-label': label, title: label}, text);
    button.addEventListener('click', action);
    return button;
  }

  // A field that is read at every key, and says when it holds no number that can be used.
  field(label, className, read) {
    const input = el('input', {type: 'text', inputMode: 'decimal', autocomplete: 'off', className});
    input.addEventListener('input', () => input.setAttribute('aria-invalid', String(!read(input.value.trim()))));
    input.addEventListener('change', () => { this.history.kind = null; this.fill(); });
    return {input, label: el('label', {}, label, input)};
  }

  build() {
    this.schedules = el('select', {id: `${this.name}-schedule`},
      ...given.schedules.map(({label}, i) => el('option', {value: String(i)}, label)));
    this.schedules.addEventListener('change', () => this.open(Number(this.schedules.value)));
    this.stage = el('select', {id: `${this.name}-stage`});
    this.stage.addEventListener('change', () => this.fill());
    this.m = this.field('m', 'short', text => this.readMicrobatches(text));
    this.limit = this.field('limit', 'short', text => this.readLimit(text));
    this.limitUnit = el('span', {className: 'quiet'});
    this.durations = Object.fromEntries(Object.entries(kDurations).map(
      ([what, label]) => [what, this.field(label, '', text => this.readSeconds(what, text))]));
    this.undo = this.button('Undo', () => this.goBack());
    this.redo = this.button('Redo', () => this.goForth());
    this.reset = this.button('As planned', () => this.open(Number(this.schedules.value)), 'Forget all changes');
    this.moves = [
      this.button('\u25c0', () => this.shift(-1), 'Taken pass one place earlier'),
      this.button('\u25b6', () => this.shift(1), 'Taken pass one place later'),
      this.button('\u25b2', () => this.shiftDevice(-1), 'Its stage to the device above'),
      this.button('\u25bc', () => this.shiftDevice(1), 'Its stage to the device below'),
      this.button('&', () => this.changeBlock(), 'Taken pass and the one behind it as one block, or a block taken apart'),
    ];
    this.save = this.button('Save as CSV', () => this.download());
    this.canvas = el('canvas', {id: `${this.name}-board`, tabIndex: 0, role: 'application', 'aria-describedby': 'hint'});
    this.canvas.addEventListener('focus', () => { Bench.active = this; });
    this.notes = el('p', {id: `${this.name}-notes`, className: 'quiet notes'});
    this.status = el('p', {id: `${this.name}-status`, className: 'status', role: 'status'});
    this.legend = el('div', {className: 'legend', id: `${this.name}-legend`});
    this.devices = el('div', {className: 'table'});
    this.csv = el('div');
    this.csvPart = el('details', {}, el('summary', {}, 'The CSV, and the command that runs it'), this.csv);
    this.csvPart.addEventListener('toggle', () => this.fillCsv());
    this.node = el('section', {className: 'panel bench', 'aria-label': `Bench ${this.name}`},
      el('div', {className: 'head'}, el('h2', {}, this.name), el('label', {}, 'schedule', this.schedules), this.m.label,
        this.limit.label, this.limitUnit),
      el('div', {className: 'head'}, el('label', {}, 'milliseconds of', this.stage),
        ...Object.values(this.durations).map(({label}) => label)),
      el('div', {className: 'head'},
        el('span', {className: 'buttons'}, this.undo, this.redo, this.reset),
        el('span', {className: 'buttons', role: 'group', 'aria-label': 'Move'}, ...this.moves), this.save),
      this.notes, this.status, this.legend, el('div', {className: 'plot'}, this.canvas),
      el('details', {}, el('summary', {}, 'Devices'), this.devices), this.csvPart);
  }

  // Durations of passes that the order has.
  shownDurations() {
    const kinds = new Set(this.state.order.flat().map(({kind}) => kind));
    return new Set(Object.keys(kDurations).filter(what => {
      if (what === 'overlapped') return kinds.has('FB') && !this.state.model.blocks;
      if (what.startsWith('copy')) return this.state.model.copies !== null;
      return what !== 'recompute' || kinds.has('R');
    }));
  }

  fill() {
    const {state} = this;
    const put = ({input}, value) => {
      if (input === document.activeElement && input.getAttribute('aria-invalid') !== 'true' && this.history.kind) return;
      input.value = value;
      input.setAttribute('aria-invalid', 'false');
    };
    put(this.m, String(state.microbatches));
    put(this.limit, state.limit === null ? '' : typed(this.schedule.memory ? state.limit / kGiB : state.limit));
    this.limitUnit.textContent = this.schedule.memory ? 'GiB of activations per device' : 'units in flight per device';
    const shown = this.shownDurations();
    for (const [what, field] of Object.entries(this.durations)) {
      field.label.hidden = !shown.has(what);
      if (shown.has(what)) put(field, typed(secondsOf(state, what, this.chosenStage()) / kDurationUnit));
    }
    this.undo.disabled = this.history.past.length === 0;
    this.redo.disabled = this.history.future.length === 0;
    this.reset.disabled = this.undo.disabled && this.redo.disabled;
    this.unsaved = this.schedule.unsaved ?? (state.model.copies && csvOf(state) === null ? 'a row has no place for a copy of this order' : null);
    this.save.disabled = this.unsaved !== null;
    this.save.textContent = this.unsaved ? 'No CSV' : 'Save as CSV';
    this.save.title = this.save.ariaLabel = this.unsaved ? `No CSV: ${this.unsaved}` : 'Save as CSV';
  }

  fillLegend() {
    const kinds = Object.entries(this.schedule.fills).map(([kind, {meaning, shades}]) => {
      const first = shades[0].fill, last = shades[shades.length - 1].fill;
      return el('span', {}, el('i', {style: `background:linear-gradient(90deg, ${first} 50%, ${last} 50%)`}),
        `${kind} ${meaning}${shades.length > 1 ? ` (chunk 0, ${shades.length - 1})` : ''}`);
    });
    const beside = [...new Set(this.planned.beside.map(({kind}) => kind))].map(kind =>
      el('span', {}, el('i', {style: `background:${kBeside[kind]}`}), kind === 'vocabulary' ? 'collective of the vocabulary' : kind));
    this.legend.replaceChildren(...kinds, ...beside, el('span', {}, el('i', {style: 'background:var(--critical)'}), 'critical path'));
  }

  fillDevices() {
    const {result} = this;
    const head = ['device', 'busy', 'idle', 'peak activation', 'in flight'];
    this.devices.replaceChildren(el('table', {},
      el('thead', {}, el('tr', {}, ...head.map(text => el('th', {className: 'plain', scope: 'col'}, text)))),
      el('tbody', {}, ...result.devices.map((device, d) => el('tr', {},
        ...[String(d), seconds(device.busy), show(1 - device.busy / result.makespan, 'share'),
          this.schedule.memory ? bytes(device.peak_activation) : '-', String(device.peak_in_flight)].map(text => el('td', {}, text)))))));
  }

  // ---- what is typed; each says whether it can be used ----

  readMicrobatches(text) {
    const why = /^\d{1,6}$/.test(text) ? whyNoOrder(this.schedule, Number(text)) : 'm is a number of microbatches';
    if (why) return this.refuse(`m = ${text}: ${why}`);
    this.commit(plannedState(this.schedule, Number(text), this.state), `m = ${text}, in the schedule's own order`, 'm');
    return true;
  }

  readLimit(text) {
    const number = Number(text) * (this.schedule.memory ? kGiB : 1);
    if (text !== '' && !(number > 0 && number < Infinity)) return this.refuse('a limit is a number above 0, or nothing for none');
    this.commit({...this.state, limit: text === '' ? null : number}, text === '' ? 'no limit' : `limit ${text}`, 'limit');
    return true;
  }

  chosenStage() { return this.stage.value === '' ? null : Number(this.stage.value); }

  readSeconds(what, text) {
    const number = Number(text) * kDurationUnit;
    if (text === '' || !(number >= 0 && number < 1e6)) return this.refuse('a duration is a number of milliseconds, 0 or more');
    const vs = what === 'transfer' ? null : this.chosenStage();
    this.commit(withSeconds(this.state, what, vs, number),
      `${kDurations[what]} of ${vs === null ? 'all stages' : `stage ${vs}`} ${text} ms`, `${what} ${vs}`);
    return true;
  }

  refuse(why) {
    this.say(`Not possible: ${why}`, true);
    return false;
  }

  // ---- what follows ----

  peakOf(device) { return this.schedule.memory ? device.peak_activation : device.peak_in_flight; }
  peakText(device) { return this.schedule.memory ? bytes(device.peak_activation, 3) : String(device.peak_in_flight); }
  peakName() { return this.schedule.memory ? 'peak' : 'in flight'; }
  isOver(device) { return this.shown.state.limit !== null && this.peakOf(device) > this.shown.state.limit; }
  overLimit() { return this.shown.result.devices.flatMap((device, d) => (this.isOver(device) ? [d] : [])); }

  shade({kind, vs}) { return this.schedule.fills[kind].shades[chunkOf(this.shown.state.model, vs)]; }

  refresh() {
    this.candidate = null;
    this.faulty = [];  // texts of passes that wait for each other
    this.result = evaluate(this.state.model, this.state.order);
    this.fill();
    this.fillDevices();
    this.fillCsv();
    this.board.layOut();
    this.changed();
  }

  commit(next, what, kind = null) {
    const before = this.result;
    this.history.push(next, kind);
    this.refresh();
    this.say(`${what}: ${this.changeText(before, this.result)}`);
  }

  changeText(before, after) {
    const change = after.makespan / before.makespan - 1;
    const over = this.overLimit();
    return `makespan ${seconds(after.makespan)} (${change > 0 ? '+' : ''}${fixed(100 * change, 2)}%), bubble rate ${show(after.bubble_rate, 'share')}` +
      (over.length > 0 ? `; over the limit: ${over.length === 1 ? 'device' : 'devices'} ${over.join(', ')}` : '');
  }

  // Shows a change's makespan, or why it is impossible; true if it is possible.
  tryState(next, what) {
    const result = evaluate(next.model, next.order);
    this.candidate = null;
    this.faulty = [];
    if (result.fault) {
      this.faulty = result.fault.passes.map(([device, at]) => passText(next.order[device][at]));
      this.refuse(`${what}: ${result.fault.text}`);
    } else {
      this.candidate = {state: next, result, what};
      this.say(`${what}: ${this.changeText(this.result, result)}`);
    }
    this.changed();
    return this.candidate !== null;
  }

  tryPlace({device, at}, slot) {
    if (slot === at) {
      if (this.candidate || this.faulty.length > 0) this.letGo();
      return false;
    }
    const passes = this.state.order[device];
    const others = passes.filter((_, i) => i !== at);
    const where = slot < others.length ? `before ${passText(others[slot])}` : `last on device ${device}`;
    return this.tryState(withPassMoved(this.state, device, at, slot), `${passText(passes[at])} ${where}`);
  }

  tryDevice({device, at}, other) {
    const {model} = this.state;
    const {vs} = this.state.order[device][at];
    const partner = partnerOf(model, vs, other);
    const what = `stage ${vs} to device ${other}, stage ${partner} to device ${device}`;
    const why = whyNotSwapped(this.schedule, this.state, vs, partner);
    if (!why) return this.tryState(withStagesSwapped(this.state, this.result, vs, partner), what);
    this.letGo();
    return this.refuse(`${what}: ${why}`);
  }

  // Keep the tried change, or forget it.
  keep() {
    if (this.candidate) this.commit(this.candidate.state, this.candidate.what);
  }
  letGo() {
    this.candidate = null;
    this.faulty = [];
    this.say('');
    this.changed();
  }

  goBack() {
    this.history.undo();
    this.refresh();
    this.say(`Undone: makespan ${seconds(this.result.makespan)}`);
  }
  goForth() {
    this.history.redo();
    this.refresh();
    this.say(`Done again: makespan ${seconds(this.result.makespan)}`);
  }

  say(text, wrong = false) {
    this.status.textContent = text;
    this.status.classList.toggle('wrong', wrong);
  }

  // ---- the taken pass ----

  place() { return this.taken && whereIs(this.shown.state.order, this.taken); }

  take(place) {
    Bench.active = this;
    this.candidate = null;
    this.faulty = [];
    this.taken = place && passText(this.state.order[place.device][place.at]);
    this.say(place ? this.textOf(place).replaceAll('\n', ', ') : '');
    this.changed();
  }

  walk(step) {
    const place = this.place() ?? {device: 0, at: 0};
    const {length} = this.state.order[place.device];
    this.take({device: place.device, at: Math.max(0, Math.min(this.taken ? place.at + step : 0, length - 1))});
  }

  // To the pass of the next device that runs at about the same time.
  walkDevice(step) {
    const place = this.place() ?? {device: 0, at: 0};
    const device = Math.max(0, Math.min(place.device + step, this.state.order.length - 1));
    const {start, end} = this.result;
    const middle = (start[place.device][place.at] + end[place.device][place.at]) / 2;
    this.take({device, at: Math.max(0, upperBound(start[device], middle) - 1)});
  }

  withTaken(action) {
    const place = this.place();
    if (!place) return this.refuse('take a pass first: tap it, or walk to it with the arrows');
    if (action(place)) this.keep();
    return true;
  }
  shift(step) {
    this.withTaken(place => {
      const slot = place.at + step;
      const fits = slot >= 0 && slot < this.state.order[place.device].length;
      return fits ? this.tryPlace(place, slot) : this.refuse(`${this.taken} is the ${step < 0 ? 'first' : 'last'} pass of device ${place.device}`);
    });
  }
  shiftDevice(step) {
    this.withTaken(place => {
      const device = place.device + step;
      const fits = device >= 0 && device < this.state.order.length;
      return fits ? this.tryDevice(place, device) : this.refuse(`there is no device ${step < 0 ? 'above' : 'below'}`);
    });
  }

  // Joins the taken pass with the one behind it; takes a block apart.
  changeBlock() {
    this.withTaken(place => {
      const {device, at} = place, pass = this.state.order[device][at];
      const apart = pass.kind === 'FB';
      const why = apart ? null : whyNotJoined(this.state, device, at);
      if (why) return this.refuse(why);
      const next = withBlockChanged(this.state, device, at);
      const changed = passText(next.order[device][at]);
      if (!this.tryState(next, apart ? `${passText(pass)} apart` : `${changed} as one block`)) return false;
      this.taken = changed;
      return true;
    });
  }

  textOf({device, at}) {
    const {state: {order, model}, result} = this.shown;
    if (at < 0) return `device ${device}, idle`;
    const pass = order[device][at];
    const parts = pass.parts.map(part => `${partText(part)}: ${this.schedule.fills[part.kind].meaning}, microbatch ` +
      `${Math.floor(part.unit / model.splits)}${model.splits > 1 ? `, split ${part.unit % model.splits}` : ''}, stage ${part.vs}`);
    const [start, end] = [result.start[device][at], result.end[device][at]];
    return [parts.join('\nbeside '), `device ${device}`, `start ${seconds(start - result.first)}`, `duration ${seconds(end - start)}`,
      ...(result.critical.some(([d, i]) => d === device && i === at) ? ['on the critical path'] : [])].join('\n');
  }

  // Copies and collectives beside a device's passes at a time; empty where there are none.
  besideText({device, time}) {
    const {result} = this.shown;
    return result.beside.filter(each => (each.device ?? device) === device && each.start <= time && time <= each.end).map(({kind, of, unit, start, end}) =>
      `${kind === 'vocabulary' ? `${of} ${unit}` : `${kind} of ${of}`}\nstart ${seconds(start - result.first)}, duration ${seconds(end - start)}`).join('\n');
  }

  // ---- saved ----

  csvName() { return `${this.schedule.label.replace(/[^\w.-]+/g, '-')}.csv`; }

  command() {
    const {order} = this.schedule;
    const own = each => each.startsWith('schedule=') || (order !== null && each.startsWith('batch.order='));
    const words = ['pipesim', 'run', given.file, ...given.overrides.filter(each => !own(each)), ...(order === null ? [] : [order])];
    const m = this.state.microbatches;
    if (m !== this.schedule.microbatches) {
      words.push(`batch.num_microbatches=${m}`);
      if (this.schedule.samples !== null) words.push(`batch.global_batch_size=${m * this.schedule.samples}`);
    }
    return [...words, `schedule={csv: ${this.csvName()}}`].map(quoted).join(' ');
  }

  fillCsv() {
    if (!this.csvPart.open) return;
    if (this.unsaved) {
      this.csv.textContent = `No CSV: ${this.unsaved}.`;
      return;
    }
    const stages = JSON.stringify(this.state.model.stages.map(({transfer, transfer_back, ...rest}) => rest));
    const same = stages === JSON.stringify(this.schedule.model.stages.map(({transfer, transfer_back, ...rest}) => rest)) && this.state.wire === this.schedule.wire;
    const notes = [
      same ? null : 'A CSV holds an order: durations that were changed here have to be changed in the scenario too.',
      this.schedule.modelled ? 'A CSV names no framework: where a model hides messages behind matmuls as the schedule\'s own does, the saved order runs without.' : null,
    ].filter(Boolean);
    this.csv.replaceChildren(...notes.map(text => el('p', {className: 'quiet'}, text)),
      copyable('Run the saved order', this.command(), true), copyable(this.csvName(), csvOf(this.state)));
  }

  download() {
    download(new Blob([csvOf(this.state)], {type: 'text/csv'}), this.csvName());
    this.say(`Saved as ${this.csvName()}; run it with: ${this.command()}`);
  }
}
Bench.active = null;
