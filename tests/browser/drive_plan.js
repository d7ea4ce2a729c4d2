// Uses the page of a plan as a person would; drive.js calls it.

// The largest difference between two objects' numbers of the same names.
const farthest = (a, b) => Object.keys(a).reduce((most, name) => Math.max(most, Math.abs(a[name] - b[name])), 0);

// Of every row against its baseline what the page computes is what the plan's document says.
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

async function drivePlan(found) {
  checkDifferences(found);
  await driveDifference(found);
  const width = () => pareto.spanY[1] - pareto.spanY[0];
  const banded = width();
  document.getElementById('bands').click();
  await pause();
  found.bands = banded / width();
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
