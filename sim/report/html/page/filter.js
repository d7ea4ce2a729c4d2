// The filter above the table: words that a row must have, and conditions on columns with units.

const kFilterUnits = {'%': 0.01};
for (const [name, size] of [...kTimeUnits, ...kByteUnits]) kFilterUnits[name.toLowerCase()] = size;

const plainWord = word => word.toLowerCase().replaceAll(/[ _-]/g, '');
const namesOf = each => [plainWord(each.name), plainWord(each.label)];
const columnCalled = text => columns.find(each => namesOf(each).includes(plainWord(text)));

// The column that is called so, or the only one whose name or label begins with, or else contains, `text`.
function columnLike(text) {
  const wanted = plainWord(text);
  const which = test => columns.filter(each => namesOf(each).some(test));
  const begin = which(name => name.startsWith(wanted));
  const found = columnCalled(text) ? [columnCalled(text)] : begin.length > 0 ? begin : which(name => name.includes(wanted));
  if (found.length === 0) throw new Error(`no column like '${text}'`);
  if (found.length > 1) throw new Error(`'${text}' may be ${found.map(each => each.label).join(', ')}`);
  return found[0];
}

// Words and conditions; of words before a sign as many belong to it as together are a column's name.
function termsOf(text) {
  const terms = [];
  for (const part of text.replaceAll(/\s*(<=|>=|!=|<|>|=)\s*/g, '$1').split(/\s+/).filter(each => each !== '')) {
    const [, name, rest] = /^([^<>=!]+)(.*)$/.exec(part) ?? [, '', part];
    let words = 0;
    for (let n = 1; rest !== '' && n <= terms.length; ++n) {
      if (columnCalled([...terms.slice(-n), name].join(' '))) words = n;
    }
    terms.push([...terms.splice(terms.length - words), name].join(' ') + rest);
  }
  return terms;
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
      conditions = termsOf(input.value).map(conditionOf);
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
