// The filter above the table: words that a row must have, and conditions on columns with units.

const kFilterUnits = {'%': 0.01};
for (const [name, size] of [...kTimeUnits, ...kByteUnits]) kFilterUnits[name.toLowerCase()] = size;

// The column whose name or label begins with, or else contains, `text`.
function columnLike(text) {
  const plain = word => word.toLowerCase().replaceAll(/[ _-]/g, '');
  const wanted = plain(text);
  const names = each => [plain(each.name), plain(each.label)];
  return columns.find(each => names(each).includes(wanted)) ??
    columns.find(each => names(each).some(name => name.startsWith(wanted))) ??
    columns.find(each => names(each).some(name => name.includes(wanted)));
}

const kCompare = {
  '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
  '=': (a, b) => a === b, '!=': (a, b) => a !== b,
};

// A predicate over rows; throws an Error that says what is wrong with the term.
function conditionOf(term) {
  const match = /^([^<>=!]+)(<=|>=|!=|<|>|=)(.+)$/.exec(term);
  if (!match) {
    const word = term.toLowerCase();
    const texts = columns.filter(each => each.text);
    return row => texts.some(each => String(each.values[row]).toLowerCase().includes(word));
  }
  const [, name, sign, wanted] = match;
  const found = columnLike(name);
  if (!found) throw new Error(`no column like '${name}'`);
  const compare = kCompare[sign];
  if (found.text) return row => compare(String(found.values[row]), wanted);
  const number = /^([-+0-9.e]+)([a-z%]*)$/i.exec(wanted);
  const unit = number && number[2] !== '' ? kFilterUnits[number[2].toLowerCase()] : 1;
  if (!number || Number.isNaN(Number(number[1])) || unit === undefined) {
    throw new Error(`'${wanted}' is no number with a unit (%, ms, GiB)`);
  }
  const limit = Number(number[1]) * unit;
  return row => typeof found.values[row] === 'number' && compare(found.values[row], limit);
}

function startFilter() {
  const input = byId('filter'), note = byId('filter-note');
  const apply = () => {
    let message = '';
    let conditions = [];
    try {
      conditions = input.value.split(/\s+/).filter(term => term !== '').map(conditionOf);
    } catch (error) {
      message = error.message;
    }
    note.classList.toggle('wrong', message !== '');
    state.shown = [];
    for (let row = 0; row < rowCount; ++row) {
      if (conditions.every(holds => holds(row))) state.shown.push(row);
    }
    note.textContent = message || (state.shown.length === rowCount ? counted(rowCount, 'row')
      : `${state.shown.length.toLocaleString('en-US')} of ${counted(rowCount, 'row')}`);
    state.tell('shown');
  };
  input.addEventListener('input', apply);
  apply();
}
