// Axes as a sweep's page computes them, for tests/report/axes_test.cc: node axes_cases.js AXES.js
const fs = require('fs');
const vm = require('vm');

vm.runInThisContext(fs.readFileSync(process.argv[2], 'utf8'));

const axis = (...cells) => levelsOf(cells, 12).of;
const a = axis(0, 1, 0, 1), b = axis('x', 'x', 'y', 'y');
const drawn = Array.from({length: 24}, (_, i) => (i * 7) % 24 + 1);

console.log(JSON.stringify({
  additive: [etaSquared(a, [0, 1, 10, 11]), etaSquared(b, [0, 1, 10, 11])],
  together: [etaSquared(a, [0, 1, 1, 0]), etaSquared(b, [0, 1, 1, 0])],
  uneven: etaSquared(axis('p', 'p', 'q', 'p'), [1, 2, 7, 3]),
  gaps: etaSquared(axis('p', 'p', 'q', 'p', null, 'q'), [1, 2, 7, 3, 100, null]),
  alone: etaSquared(axis(1, 2, 3), [5, 1, 4]),
  still: [etaSquared(a, [3, 3, 3, 3]), etaSquared(a, [0.3, 0.1 + 0.2, 0.3, 0.3]), etaSquared(a, [null, null, null, null])],
  units: levelsOf(['10 ms', '2 ms', '1.5 ms', '10 ms', null], 12),
  mixed: levelsOf(['10 ms', '2 s', 'zb-h1', '1f1b'], 2),
  many: levelsOf(drawn, 12),
  // Drawn numbers are all different: without levels they would explain everything.
  noise: etaSquared(levelsOf(drawn, 12).of, drawn.map(value => value % 2)),
}));
