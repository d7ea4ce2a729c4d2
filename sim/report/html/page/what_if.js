// A plan with more or less of one thing: points that `pipesim plan --what-if` has searched, nothing between.

// Rows of a plan that a framework runs; all where none does.
function rowsThatRun(plan) {
  const run = plan.layouts.filter(each => each.runs_on.length > 0);
  return run.length > 0 && plan.layouts.some(each => each.idea) ? run : plan.layouts;
}

// The fastest by replay, as those of what-ifs are.
const asItIs = plan => rowsThatRun(plan).reduce((best, each) => each.iteration_seconds < best.iteration_seconds ? each : best);

// Digits that tell layouts of a plan apart; null without a band.
function digitsOf(plan) {
  const sure = sureDigits(planned.findIndex(each => each.plan === plan));
  return sure === null ? null : sure + 1;
}

// A plan's quantities with their points by factor, the plan itself included: [{name, points: [{factor, gpus, limit,
// layout}]}].
function quantitiesOf(plan) {
  const found = new Map();
  for (const {quantity, factor, gpus, memory_limit_bytes: limit, layout} of plan.what_ifs) {
    if (quantity === undefined || factor === null) continue;
    if (!found.has(quantity)) {
      found.set(quantity, [{factor: 1, gpus: plan.gpus, limit: plan.memory_limit_bytes, layout: asItIs(plan)}]);
    }
    found.get(quantity).push({factor, gpus, limit, layout});
  }
  return [...found].map(([name, points]) => ({name, points: points.sort((a, b) => a.factor - b.factor)}));
}

class WhatIf {
  constructor(plans) {
    this.plans = plans;
    this.select = byId('what-if-plan');
    this.select.append(...plans.map((plan, i) => el('option', {value: String(i)}, nameOfPlan(plan))));
    this.select.parentElement.hidden = plans.length < 2;
    this.select.addEventListener('change', () => this.open());
    byId('what-if-reset').addEventListener('click', () => this.move(this.sliders[0], this.sliders[0].rest));
    this.open();
  }

  open() {
    this.plan = this.plans[Number(this.select.value)];
    this.sliders = quantitiesOf(this.plan).map((each, i) => this.slider(each, i));
    byId('what-if-sliders').replaceChildren(...this.sliders.flatMap(({label, note, input}) => [label, note, input]));
    this.move(this.sliders[0], this.sliders[0].rest);
  }

  slider({name, points}, i) {
    const id = `what-if-${i}`;
    const input = el('input', {type: 'range', id, min: 0, max: points.length - 1, step: 1});
    const slider = {points, input, rest: points.findIndex(({factor}) => factor === 1), label: el('label', {for: id}, name),
      note: el('output', {for: id})};
    input.addEventListener('input', () => this.move(slider, Number(input.value)));
    return slider;
  }

  // One thing at a time: what two changes would do together has not been searched.
  move(slider, at) {
    for (const each of this.sliders) {
      const index = each === slider ? at : each.rest;
      each.input.value = String(index);
      each.note.textContent = this.noteOf(each.points[index], each.points.length);
      each.input.setAttribute('aria-valuetext', each.note.textContent);
    }
    this.point = slider.points[at];
    this.fill();
  }

  noteOf({factor, gpus, limit}) {
    if (factor === 1) return 'as it is';
    const changed = gpus !== this.plan.gpus ? `, ${counted(gpus, 'GPU')}`
      : limit !== this.plan.memory_limit_bytes ? `, ${bytes(limit)}` : '';
    return `\u00d7 ${factor}${changed}`;
  }

  fill() {
    const first = asItIs(this.plan), {layout, gpus, limit, factor} = this.point;
    const unfit = layout === null;
    byId('what-if-none').hidden = !unfit;
    const change = name => unfit || factor === 1 ? '' : signed(layout[name] / first[name] - 1, 'share');
    const line = (name, before, after, more = '') => [name, before, unfit ? '-' : after, more];
    const digits = digitsOf(this.plan), text = (each, name, kind) => showSure(each[name], kind, digits);
    const of = (name, kind) => line(labelOf(name), text(first, name, kind), unfit ? '' : text(layout, name, kind), change(name));
    const sizes = each => kSizes.filter(name => !name.startsWith('expert_') || each[name] > 1)
      .map(name => `${labelOf(name)} ${each[name]}`).join(', ');
    const lines = [
      line('layout', first.label, layout?.label),
      line('sizes', sizes(first), unfit ? '' : sizes(layout)),
      of('iteration_seconds', 'seconds'), of('tokens_per_second_per_gpu', 'rate'), of(shownMfu(first), 'share'),
      line(labelOf('peak_memory_bytes'), bytes(first.peak_memory_bytes), unfit ? '' : bytes(layout.peak_memory_bytes), change('peak_memory_bytes')),
      ['memory limit', bytes(this.plan.memory_limit_bytes), bytes(limit), ''],
      line('left of it', bytes(first.headroom_bytes), unfit ? '' : bytes(layout.headroom_bytes)),
      ['GPUs', String(this.plan.gpus), String(gpus), ''],
    ];
    plainTable('what-if-table', ['', 'as it is', 'then', 'change'].map(
      (name, i) => ({name, values: lines.map(each => each[i] ?? '')})), 100);
  }
}

function startWhatIf() {
  const plans = (report.plan?.document.plans ?? []).filter(plan => plan.layouts.length > 0 && quantitiesOf(plan).length > 0);
  if (plans.length === 0) return null;
  byId('what-if-part').hidden = false;
  return new WhatIf(plans);
}
