// Evaluates the cases of tests/report/workbench_test.cc with the page's evaluator and says where it differs:
// node workbench_cases.js EVALUATE.js CASES.json
const fs = require('fs');
const vm = require('vm');

vm.runInThisContext(fs.readFileSync(process.argv[2], 'utf8'));
const cases = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));

const differences = [];
const counts = {cases: cases.length, passes: 0, refused: 0};

function compare(number, what, found, expected) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b && differences.length < 20) differences.push(`case ${number}: ${what}: ${a}, expected ${b}`);
}

cases.forEach(({model, order, expected}, number) => {
  const found = vm.runInThisContext('evaluate')(model, vm.runInThisContext('orderOf')(order));
  if (expected.refused !== undefined) {
    ++counts.refused;
    compare(number, 'refused', Boolean(found.fault), true);
    if (expected.refused !== '') compare(number, 'cycle', found.fault?.text, expected.refused);
    return;
  }
  if (found.fault) return compare(number, 'runs', found.fault.text, 'a run');
  for (const what of ['makespan', 'cost', 'work', 'devices', 'critical']) compare(number, what, found[what], expected[what]);
  for (const what of ['start', 'end']) compare(number, what, found[what].map(times => [...times]), expected[what]);
  counts.passes += order.reduce((sum, text) => sum + text.split(' ').length, 0);
});

console.log(JSON.stringify({...counts, differences}));
