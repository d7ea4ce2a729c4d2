// The form of a live page: a question, its words, and its place in the page's address.

const choices = JSON.parse(byId('data').textContent);
const form = byId('ask');
const field = name => form.querySelector(`[name=${name}]`);
const chosenOf = kind => choices[`${kind}s`].find(each => each.name === field(kind).value);

const kDefaults = {model: 'llama3-8b', cluster: 'dgx-h100', precision: 'bf16', schedule: ''};

// Positions are powers of two of a factor, a quarter of an octave apart.
const kStep = 0.25;
const kSliderTexts = {
  bandwidth: factor => `${significant(factor * (chosenOf('cluster')?.bandwidth ?? 0) / 1e9, 3)} GB/s`,
  memory: factor => bytes(factor * (chosenOf('cluster')?.memory ?? 0), 3),
  vocabulary: factor => chosenOf('model') ? significant(Math.round(factor * chosenOf('model').vocabulary), 6) : '-',
  failures: factor => `${significant(factor * choices.failures.first, 3)} a day`,
};
const kSliderNames = {bandwidth: 'Network bandwidth', memory: 'Memory of a GPU', vocabulary: 'Vocabulary',
  failures: 'Failures of 1,000 nodes'};

const kFailureFactors = {key: 'failures', least: 1 / 16, most: 64};

class Slider {
  constructor({key, least, most}, changed) {
    this.key = key;
    const [min, max] = [Math.log2(least), Math.log2(most)];
    this.input = el('input', {type: 'range', name: key, min, max, step: kStep, value: 0});
    this.note = el('output');
    this.node = el('label', {className: 'slider'}, el('span', {}, kSliderNames[key], this.note), this.input);
    this.input.addEventListener('input', () => { this.tell(); changed(); });
  }
  get factor() { return 2 ** Number(this.input.value); }
  set factor(value) { this.input.value = String(Math.log2(value)); }
  tell() {
    const text = kSliderTexts[this.key](this.factor);
    this.note.textContent = this.factor === 1 ? text : `${text} (\u00d7 ${Number(this.factor.toPrecision(3))})`;
    this.input.setAttribute('aria-valuetext', this.note.textContent);
  }
}

// "8k" is 8192, "1,024" is 1024; NaN for another text.
function countIn(text) {
  const [, digits, unit] = /^([\d,]+)\s*([km]?)$/i.exec(text.trim()) ?? [];
  return digits === undefined ? NaN : Number(digits.replaceAll(',', '')) * {'': 1, k: 1024, m: 1024 ** 2}[unit.toLowerCase()];
}

class Form {
  constructor(changed) {
    byId('ask-models').append(...choices.models.map(({name}) => el('option', {value: name})));
    const names = values => values.map(value => el('option', {value}, value));
    field('cluster').append(...choices.clusters.map(({name, title}) => el('option', {value: name, title}, name)));
    field('precision').append(...names(choices.precisions));
    field('schedule').append(el('option', {value: ''}, 'any'), ...names(choices.schedules));
    this.sliders = [...choices.factors, kFailureFactors].map(each => new Slider(each, changed));
    byId('ask-sliders').append(...this.sliders.map(({node}) => node));
    for (const name of ['model', 'cluster', 'gpus', 'batch', 'length', 'precision', 'schedule']) {
      field(name).addEventListener('input', () => { this.tell(); changed(); });
    }
    form.addEventListener('submit', event => event.preventDefault());
    byId('ask-reset').addEventListener('click', () => { this.fill({}); changed(); });
    this.fill(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  }

  // From texts by name; the first values where one is not there.
  fill(texts) {
    for (const [name, value] of Object.entries(kDefaults)) field(name).value = texts[name] ?? value;
    for (const {key, first} of choices.counts) field(key).value = texts[key] ?? String(first);
    for (const slider of this.sliders) slider.factor = Number(texts[slider.key]) > 0 ? Number(texts[slider.key]) : 1;
    this.tell();
  }

  tell() {
    for (const slider of this.sliders) slider.tell();
    for (const {key, least, most} of choices.counts) {
      const count = countIn(field(key).value);
      field(key).setAttribute('aria-invalid', String(!(count >= least && count <= most)));
    }
    field('model').setAttribute('aria-invalid', String(!chosenOf('model')));
  }

  // A model's name that is being typed is no question yet.
  unfinished() {
    const text = field('model').value.trim();
    if (!text) return 'choose a model';
    const matching = chosenOf('model') ? [] : choices.models.filter(({name}) => name.includes(text));
    return matching.length > 0 ? `${counted(matching.length, 'model')} with '${text}' in the name` : '';
  }

  // Kept in the address, so that a reload asks it again.
  question() {
    const asked = {model: field('model').value.trim(), cluster: field('cluster').value};
    for (const {key} of choices.counts) asked[key] = countIn(field(key).value);
    Object.assign(asked, {precision: field('precision').value, schedule: field('schedule').value});
    const factors = Object.fromEntries(this.sliders.filter(({factor}) => factor !== 1).map(({key, factor}) => [key, factor]));
    history.replaceState(null, '', `#${new URLSearchParams({...asked, ...factors})}`);
    const failures = (factors.failures ?? 1) * choices.failures.first;
    return {...asked, ...factors, failures};
  }
}
