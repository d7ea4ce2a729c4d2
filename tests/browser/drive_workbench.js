// Uses a workbench as a person would, by pointer, finger and keys, and leaves what came of it in the document.

const texts = bench => bench.state.order.map(passes => passes.map(passText).join(' '));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const status = bench => bench.status.textContent;
// True if the numbers shown are the evaluator's for the state.
const follows = bench => same(bench.result, evaluate(bench.state.model, bench.state.order));

const pointer = (bench, type, [x, y], options = {}) => {
  const rect = bench.canvas.getBoundingClientRect();
  bench.canvas.dispatchEvent(new PointerEvent(type, {
    bubbles: true, cancelable: true, pointerId: 1, button: 0, buttons: 1, clientX: rect.left + x, clientY: rect.top + y, ...options,
  }));
};
const middle = ([x, y, wide, high]) => [x + wide / 2, y + high / 2];
// From a pass to a point, in two steps; `look` at what is shown before it is dropped.
function drag(bench, from, to, options = {}, look = () => null) {
  pointer(bench, 'pointerdown', from, options);
  pointer(bench, 'pointermove', [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2], options);
  pointer(bench, 'pointermove', to, options);
  const seen = look();
  pointer(bench, 'pointerup', to, options);
  return seen;
}
const key = (target, name, options = {}) => target.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true, ...options}));
const type = ({input}, text) => {
  input.focus();
  for (let length = Math.min(1, text.length); length <= text.length; ++length) {
    input.value = text.slice(0, length);
    input.dispatchEvent(new Event('input', {bubbles: true}));
  }
  input.dispatchEvent(new Event('change', {bubbles: true}));
};
const boxOf = (bench, text) => {
  const {device, at} = whereIs(bench.state.order, text);
  return bench.board.box(device, at);
};

async function driveMoves(bench, found) {
  const planned = texts(bench), before = bench.result.makespan;
  // A weight gradient of device 1 behind the pass after it, by the pointer.
  const passes = bench.state.order[1];
  const at = passes.findIndex((pass, i) => pass.kind === 'W' && i > 4 && passes[i + 1]?.kind === 'F');
  const taken = passText(passes[at]), next = passText(passes[at + 1]);
  const [x, y, wide, high] = boxOf(bench, next);
  found.seen = drag(bench, middle(boxOf(bench, taken)), [x + wide * 0.8, y + high / 2], {},
    () => bench.candidate !== null && bench.shown.result.makespan !== undefined);
  found.moved = passText(bench.state.order[1][at]) === next && passText(bench.state.order[1][at + 1]) === taken;
  found.movedSays = status(bench);
  found.changed = bench.result.makespan !== before;
  found.follows = follows(bench);
  found.saved = {csv: csvOf(bench.state), makespan: bench.result.makespan, peaks: bench.result.devices.map(each => each.peak_activation)};
  // The same back with a finger, and forth again.
  const back = boxOf(bench, next);
  drag(bench, middle(boxOf(bench, taken)), [back[0] + back[2] * 0.2, back[1] + back[3] / 2], {pointerType: 'touch'});
  found.touched = same(texts(bench), planned);
  key(document, 'z', {ctrlKey: true});
  found.undone = !same(texts(bench), planned);
  key(document, 'z', {ctrlKey: true});
  found.undoneTwice = same(texts(bench), planned) && bench.undo.disabled && bench.result.makespan === before;
  key(document, 'y', {ctrlKey: true});
  key(document, 'y', {ctrlKey: true});
  bench.undo.click();
  bench.undo.click();
  found.redone = bench.redo.disabled === false && same(texts(bench), planned);
}

async function driveRefusals(bench, found) {
  const planned = texts(bench);
  const last = bench.state.order.length - 1;
  const backward = bench.state.order[last].find(pass => pass.kind === 'B' || pass.kind === 'BW');
  const [, y] = middle(boxOf(bench, passText(backward)));
  found.marked = drag(bench, middle(boxOf(bench, passText(backward))), [bench.board.left + 1, y], {}, () => [...bench.faulty]);
  found.refused = status(bench);
  found.refusedIsMarked = bench.status.classList.contains('wrong');
  found.kept = same(texts(bench), planned);
  bench.canvas.focus();
  key(bench.canvas, 'Escape');
  found.escaped = bench.faulty.length;
}

async function driveKeys(bench, found) {
  const planned = texts(bench);
  bench.canvas.focus();
  key(bench.canvas, 'Home');
  key(bench.canvas, 'ArrowUp');
  key(bench.canvas, 'ArrowUp');
  key(bench.canvas, 'End');
  found.walked = status(bench);
  key(bench.canvas, 'ArrowRight', {shiftKey: true});
  found.atTheEnd = status(bench);
  key(bench.canvas, 'ArrowLeft', {shiftKey: true});
  found.keyMoved = status(bench);
  found.keyFollows = follows(bench) && !same(texts(bench), planned);
  bench.moves[1].click();
  found.buttonMovedBack = same(texts(bench), planned);
  bench.reset.click();
  key(bench.canvas, '+');
  found.zoomed = view.to - view.from;
  key(bench.canvas, '0');
  found.fitted = view.to - view.from;
}

async function driveNumbers(bench, found) {
  const before = bench.result.makespan;
  type(bench.durations.forward, '30.5');
  found.forward = bench.state.model.stages.map(stage => stage.forward);
  found.slower = bench.result.makespan > before && follows(bench);
  found.steps = bench.history.past.length;  // what is typed in one go is one change
  found.slowerMakespan = bench.result.makespan;
  bench.stage.value = '2';
  bench.stage.dispatchEvent(new Event('change'));
  type(bench.durations.backward_weight, '1');
  found.ofOneStage = bench.state.model.stages.map(stage => stage.backward_weight);
  type(bench.durations.forward, '-1');
  found.badSeconds = status(bench);
  bench.undo.click();
  bench.undo.click();
  found.secondsUndone = bench.result.makespan === before;
  type(bench.m, '12');
  found.passes = bench.state.order.map(passes => passes.length);
  found.ofTwelve = {csv: csvOf(bench.state), makespan: bench.result.makespan};
  type(bench.m, '999');
  found.badM = status(bench);
  bench.undo.click();
  type(bench.limit, '0.5');
  found.over = bench.overLimit();
  found.overSays = [status(bench), document.getElementById('numbers').textContent.includes('!')];
  type(bench.limit, '');
  found.notOver = bench.overLimit();
  bench.reset.click();
}

async function driveDevices(bench, found) {
  const first = boxOf(bench, '1F0'), [x, y] = middle(first);
  drag(bench, [x, y], [x + 10, y + bench.board.row]);
  found.deviceOf = bench.state.model.device_of;
  found.swapSays = status(bench);
  found.swapFollows = follows(bench);
  found.swapped = {csv: csvOf(bench.state), makespan: bench.result.makespan};
  bench.reset.click();
  bench.shift(1);
  found.nothingTaken = status(bench);
}

// Joins the first F that stands before a backward by the key, and takes it apart by the button.
async function drivePairs(bench, found) {
  const planned = texts(bench), [passes] = bench.state.order;
  const at = passes.findIndex((pass, i) => i > 0 && pass.kind === 'F' && passes[i + 1].kind !== 'F');
  bench.canvas.focus();
  bench.take({device: 0, at: at - 1});
  key(bench.canvas, 'j');
  found.noBlock = status(bench);
  bench.take({device: 0, at});
  key(bench.canvas, 'j');
  found.joined = passText(bench.state.order[0][at]);
  found.joinedSays = status(bench);
  found.joinedFollows = follows(bench) && bench.taken === found.joined;
  found.fieldShown = bench.durations.overlapped.label.hidden === false;
  found.withBlock = {csv: csvOf(bench.state), makespan: bench.result.makespan, peaks: bench.result.devices.map(each => each.peak_activation)};
  bench.moves[4].click();
  found.apart = same(texts(bench), planned);
  bench.undo.click();
  bench.undo.click();
  found.blockUndone = same(texts(bench), planned) && bench.undo.disabled;
  bench.take({device: 0, at: passes.length - 1});
  bench.moves[4].click();
  found.lastPass = status(bench);
}

// A pass whose copy back can follow it, and then one too far.
async function driveCopies(bench, found) {
  const planned = texts(bench), [passes] = bench.state.order;
  bench.take({device: 0, at: passes.length - 1});
  found.first = bench.taken;
  bench.moves[0].click();
  found.copyMoved = !same(texts(bench), planned) && follows(bench);
  bench.moves[0].click();
  found.copyRefused = status(bench);
  found.faulty = [...bench.faulty];
  found.beside = [...new Set(bench.result.beside.map(({kind}) => kind))].sort();
  found.moved = {csv: csvOf(bench.state), makespan: bench.result.makespan, peaks: bench.result.devices.map(each => each.peak_activation)};
  bench.undo.click();
  type(bench.durations.copy_out, '30');
  found.slowCopies = bench.result.makespan;
}

async function driveSecond(found) {
  const heads = () => [...document.querySelectorAll('#numbers th')].map(each => each.textContent);
  found.heads = heads();
  document.getElementById('second').click();
  found.headsOfOne = heads();
  document.getElementById('second').click();
  const [, b] = benches;
  b.schedules.value = '0';
  b.schedules.dispatchEvent(new Event('change'));
  found.sameTwice = benches[0].result.makespan === b.result.makespan;
  b.csvPart.open = true;
  await pause();
  found.csvShown = b.csv.textContent.includes('pipesim run') && b.csv.textContent.includes(csvOf(b.state));
}

const painted = canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return seen.size;  // colours
};

(async () => {
  const found = {};
  try {
    await pause();
    found.colours = benches.map(bench => painted(bench.canvas));
    found.makespans = benches.map(bench => bench.result.makespan);
    found.labels = given.schedules.map(schedule => schedule.label);
    found.unsaved = benches.map(bench => bench.save.disabled);
    if (location.hash === '#use') {
      const [bench] = benches;
      await driveMoves(bench, found);
      await driveRefusals(bench, found);
      await driveKeys(bench, found);
      await driveNumbers(bench, found);
      await driveDevices(bench, found);
      await driveSecond(found);
    }
    found.planned = benches.map(bench => (bench.unsaved ? null : csvOf(bench.state)));
    found.notes = benches.map(bench => bench.notes.textContent);
    if (location.hash === '#copies') await driveCopies(benches[0], found);
    if (location.hash === '#pairs') await drivePairs(benches[0], found);
    document.getElementById('theme').click();
    await pause();
    found.theme = document.documentElement.dataset.theme;
    found.wide = [document.documentElement.scrollWidth, innerWidth];
  } catch (error) {
    faults.push(String(error.stack ?? error));
  }
  leave(found);
})();
