// Swept keys as axes with levels, and the share of a number's variance that each axis explains.

// A number of a cell, of one with a unit ("15 ms") too: [number, unit], or null.
function numberOfCell(cell) {
  if (typeof cell === 'number') return [cell, ''];
  const found = /^([-+]?\d[\d.]*(?:e[-+]?\d+)?)\s*([a-z%/]*)$/i.exec(String(cell));
  return found && Number.isFinite(Number(found[1])) ? [Number(found[1]), found[2]] : null;
}

// Distinct cells: by number where all are numbers of one unit, else as they come.
function distinctCells(cells) {
  const distinct = [...new Set(cells.filter(cell => cell !== null))];
  const numbers = distinct.map(numberOfCell);
  const ordered = numbers.every(each => each !== null && each[1] === numbers[0][1]);
  if (ordered) distinct.sort((a, b) => numberOfCell(a)[0] - numberOfCell(b)[0]);
  return {distinct, ordered};
}

// Levels of an axis: {names, of}, `of` being a cell's level, -1 for an empty one. Numbers of more than `most` values
// stand together, neighbours with neighbours, in `most` levels of as many values each as can be.
function levelsOf(cells, most) {
  const {distinct, ordered} = distinctCells(cells);
  const count = ordered ? Math.min(most, distinct.length) : distinct.length;
  const levelOf = new Map(distinct.map((cell, i) => [cell, Math.floor(i * count / distinct.length)]));
  const names = Array.from({length: count}, (_, level) => {
    const own = distinct.filter(cell => levelOf.get(cell) === level);
    return own.length === 1 ? String(own[0]) : `${own[0]} to ${own[own.length - 1]}`;
  });
  return {names, of: cells.map(cell => levelOf.get(cell) ?? -1)};
}

// Eta squared of a main effect: the variance of the levels' means, each weighted by its values, as a share of the
// variance of all values. 0 to 1; null where the values do not vary. In a grid without gaps the axes' shares sum to at
// most 1; the rest is how axes work together.
function etaSquared(levels, values) {
  let [count, sum] = [0, 0];
  const groups = new Map();
  values.forEach((value, i) => {
    if (typeof value !== 'number' || levels[i] < 0) return;
    const group = groups.get(levels[i]) ?? {count: 0, sum: 0};
    groups.set(levels[i], {count: group.count + 1, sum: group.sum + value});
    [count, sum] = [count + 1, sum + value];
  });
  const mean = sum / count;
  let [all, between] = [0, 0];
  values.forEach((value, i) => { if (typeof value === 'number' && levels[i] >= 0) all += (value - mean) ** 2; });
  for (const group of groups.values()) between += group.count * (group.sum / group.count - mean) ** 2;
  // Differences in the last digits are no variance.
  return all > count * (1e-12 * mean) ** 2 ? Math.min(between / all, 1) : null;
}
