// The data that the program put into the page: {version, file, overrides, schedules}. A schedule is {name, label,
// microbatches, order (an override that gives their order, or null), samples (of one on all replicas, or null), model,
// wire, modelled, memory, limit, unmovable, unsaved, notes (what is shown otherwise than run), fills, orders, copies (by
// number of microbatches), refused}.

const given = JSON.parse(byId('data').textContent);

// State shared by all boards: listeners to the theme, and the part of the time in view (0 to 1 of the longest
// makespan).
const state = {
  listeners: {theme: [], view: []},
  on(what, listener) { this.listeners[what].push(listener); },
  tell(what) { for (const listener of this.listeners[what]) listener(); },
};

const view = {
  from: 0, to: 1, seconds: 1,
  // Keeps what is under `at` (0..1 of the whole) where it is.
  zoom(factor, at) {
    const span = Math.min(1, Math.max((this.to - this.from) * factor, 1e-4));
    this.move(at - (at - this.from) / (this.to - this.from) * span, span);
  },
  move(from, span = this.to - this.from) {
    this.from = Math.min(Math.max(from, 0), 1 - span);
    this.to = this.from + span;
    state.tell('view');
  },
};
