// Uses the page of a plan as a person would; drive.js calls it.

// The largest difference between two objects' numbers of the same names.
const farthest = (a, b) => Object.keys(a).reduce((most, name) => Math.max(most, Math.abs(a[name] - b[name])), 0);

// Compares the page's differences of every row from its baseline with the plan's document.
function checkDifferences(found) {
  found.farthest = found.remainder = 0;
  for (let row = 0; row < rowCount; ++row) {
    const baseline = planned.findIndex(({plan, place}) => plan === planned[row].plan && place === 0);
    const {parts, total} = differenceOf(baseline, row);
    const {difference_seconds: said, difference_by_cause_seconds: causes} = planned[row].layout;
    const found_parts = Object.fromEntries(parts.map(({name, seconds: value}) => [name, value]));
    const found_causes = Object.fromEntries(parts.flatMap(part => part.causes));
    found.farthest = Math.max(found.farthest, farthest(said, found_parts), farthest(causes, found_causes));
    found.remainder = Math.max(found.remainder, Math.abs(total - (expectedSeconds(row) - expectedSeconds(baseline))));
  }
}

async function driveDifference(found) {
  const choose = (id, row) => {
    document.getElementById(id).value = String(row);
    document.getElementById(id).dispatchEvent(new Event('change'));
  };
  choose('difference-from', 1);
  choose('difference-to', 0);
  await pause();
  found.difference = document.getElementById('difference-note').textContent;
  found.differenceLines = document.querySelectorAll('#difference-table tbody tr').length;
  found.differenceColours = painted('difference');
  send('difference', 'pointermove', at('difference', 200, 26 * 1.5));
  found.differenceHover = document.getElementById('tip').textContent;
}

// Every step of every slider: the table has the numbers of the document's own what-if, and the other sliders rest.
function driveWhatIf(found) {
  Object.assign(found, {steps: 0, wrong: [], unfit: []});
  const cells = () => [...document.querySelectorAll('#what-if-table tbody tr')].map(line => [...line.cells].map(cell => cell.textContent));
  report.plan.document.plans.forEach((plan, i) => {
    whatIf.select.value = String(i);
    whatIf.select.dispatchEvent(new Event('change'));
    const inputs = [...document.querySelectorAll('#what-if-sliders input')];
    const rest = inputs.map(input => input.value);
    inputs.forEach((input, at) => {
      let before = 0;
      for (let step = 0; step <= Number(input.max); ++step, ++found.steps) {
        input.value = String(step);
        input.dispatchEvent(new Event('input'));
        const text = input.getAttribute('aria-valuetext'), name = input.labels[0].textContent;
        const factor = text === 'as it is' ? 1 : Number(/[\d.]+/.exec(text)[0]);
        const said = factor === 1 ? {layout: asItIs(plan), gpus: plan.gpus, memory_limit_bytes: plan.memory_limit_bytes}
          : plan.what_ifs.find(each => each.quantity === name && each.factor === factor);
        const [layout, , iteration, rate, , peak, limit, , gpus] = cells().map(line => line[2]);
        const one = said.layout;
        const digits = digitsOf(plan);
        const wanted = [...(one ? [one.label, showSure(one.iteration_seconds, 'seconds', digits), showSure(one.tokens_per_second_per_gpu, 'rate', digits),
          bytes(one.peak_memory_bytes)] : ['-', '-', '-', '-']), bytes(said.memory_limit_bytes), String(said.gpus)];
        const others = inputs.every((each, j) => j === at || each.value === rest[j]);
        const right = JSON.stringify([layout, iteration, rate, peak, limit, gpus]) === JSON.stringify(wanted);
        if (!right || !others || factor <= before) found.wrong.push(`${name} ${text}: ${cells()}`);
        if (!document.getElementById('what-if-none').hidden) found.unfit.push(`${name} ${text.split(',')[0]}`);
        if ((one === null) === document.getElementById('what-if-none').hidden) found.wrong.push(`${name} ${text}: fits?`);
        before = factor;
      }
    });
    document.getElementById('what-if-reset').click();
    found.reset = inputs.every((each, j) => each.value === rest[j]) && cells()[2][1] === cells()[2][2];
  });
}

async function drivePlan(found) {
  driveWhatIf(found.whatIf = {});
  checkDifferences(found);
  await driveDifference(found);
  const width = () => pareto.spanY[1] - pareto.spanY[0];
  const banded = width();
  document.getElementById('bands').click();
  await pause();
  found.bands = banded / width();
  found.baselineNames = [{run: 'a-run'}, {file: 'a/usual.yaml'}, {run: null, file: null}].map(nameOfBaseline);
  const baseline = planned.findIndex(({place}) => place === 0);
  state.open(1);
  state.open(baseline);
  await pause();
  found.baseline = {
    timeline: painted('timeline'), bubble: painted('bubble'), cards: document.getElementById('cards').textContent,
    detail: document.getElementById('detail').textContent, texts: document.getElementById('scenario').textContent,
    compared: document.getElementById('difference-to').value === String(baseline),
  };
}
