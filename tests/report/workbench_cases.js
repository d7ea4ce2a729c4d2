// Evaluates the cases of tests/report/workbench_test.cc with the page's evaluator and says where it differs:
// node workbench_cases.js FOLDER-OF-THE-PAGE CASES.json
const fs = require('fs');
const vm = require('vm');

const [folder, file] = process.argv.slice(2);
for (const script of ['copies', 'evaluate', 'edit']) vm.runInThisContext(fs.readFileSync(`${folder}/${script}.js`, 'utf8'));
const cases = JSON.parse(fs.readFileSync(file, 'utf8'));

const differences = [];
const counts = {cases: cases.length, passes: 0, refused: 0, unequal: 0, joined: 0, copying: 0, sharded: 0, wrapping: 0, slowed: 0, stuck: 0};

function compare(number, what, found, expected) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b && differences.length < 20) differences.push(`case ${number}: ${what}: ${a}, expected ${b}`);
}

// One of all stages' durations takes twice as long: of each kind of unit too, and nothing else does.
function doubled(number, model) {
  if (!model.kinds) return;
  ++counts.unequal;
  const twice = vm.runInThisContext('(model, what) => withSeconds({model}, what, null, 2 * secondsOf({model}, what))');
  const near = (a, b) => Math.abs(a - b) <= 1e-12 * Math.abs(b);
  for (const what of ['forward', 'backward_input', 'backward_weight', 'overlapped', 'recompute']) {
    const {model: {kinds}} = twice(model, what);
    const of = (stage, key) => (key === 'recompute' && what === key ? stage.recompute ?? stage.forward : stage[key]);
    const sound = kinds.every((stages, kind) => stages.every((stage, vs) => Object.keys(stage).every(key => {
      const before = of(model.kinds[kind][vs], key);
      return key === what ? near(stage[key], 2 * before) : stage[key] === before;
    })));
    compare(number, `doubled ${what}`, sound, true);
  }
}

// The first neighbours that make a block joined, and taken apart again: the same passes, and no other time than the block's.
function joined(number, model, texts) {
  const [orderOf, whyNotJoined, withBlockChanged, evaluate, passText] =
    ['orderOf', 'whyNotJoined', 'withBlockChanged', 'evaluate', 'passText'].map(name => vm.runInThisContext(name));
  const state = {model, order: orderOf(texts)};
  for (let device = 0; device < state.order.length; ++device) {
    const at = state.order[device].findIndex((pass, i) => pass.kind !== 'FB' && whyNotJoined(state, device, i) === null);
    if (at < 0) continue;
    ++counts.joined;
    const pair = state.order[device].slice(at, at + 2);
    const together = withBlockChanged(state, device, at);
    const text = together.order[device][at];
    compare(number, 'block', text.kind, 'FB');
    compare(number, 'passes', together.order[device].length, state.order[device].length - 1);
    const apart = withBlockChanged(together, device, at).order[device].slice(at, at + 2).map(passText);
    compare(number, 'apart', apart.sort(), pair.map(passText).sort());
    const {start, end, fault} = evaluate(model, together.order);
    const takes = vm.runInThisContext('inSeconds')(model).pass(text);
    if (!fault) compare(number, 'seconds', end[device][at], start[device][at] + takes);
    return;
  }
}

cases.forEach(({model, order, expected}, number) => {
  doubled(number, model);
  joined(number, model, order);
  const found = vm.runInThisContext('evaluate')(model, vm.runInThisContext('orderOf')(order));
  if (expected.refused !== undefined) {
    ++counts.refused;
    compare(number, 'refused', Boolean(found.fault), true);
    if (expected.begins) ++counts.stuck;
    const text = expected.begins ? found.fault?.text.slice(0, expected.refused.length) : found.fault?.text;
    if (expected.refused !== '') compare(number, 'cycle', text, expected.refused);
    return;
  }
  if (found.fault) return compare(number, 'runs', found.fault.text, 'a run');
  counts.copying += model.copies ? 1 : 0;
  counts.sharded += model.joins.length > 0 ? 1 : 0;
  counts.wrapping += model.wraps > 1 ? 1 : 0;
  counts.slowed += model.slowdown.some(each => each !== 1) ? 1 : 0;
  for (const what of ['makespan', 'cost', 'work', 'devices', 'critical']) {
    if (expected[what] !== undefined) compare(number, what, found[what], expected[what]);
  }
  for (const what of ['start', 'end']) compare(number, what, found[what].map(times => [...times]), expected[what]);
  counts.passes += order.reduce((sum, text) => sum + text.split(' ').length, 0);
});

console.log(JSON.stringify({...counts, differences}));
