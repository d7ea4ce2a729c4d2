// Numbers with units, and the few helpers that build the page. Text from outside is always set as
// text, never as markup.

// An element with properties (`class`, `for` and other attributes too) and children.
function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node && name !== 'list') node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

const byId = id => document.getElementById(id);

function fixed(value, digits) {
  return value.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

// `digits` significant ones, without an exponent where that is readable.
function significant(value, digits = 4) {
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= 9 || size < -4) return value.toExponential(digits - 1);
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  return fixed(value, Math.min(Math.max(digits - 1 - size, 0), 8));
}

const kTimeUnits = [['s', 1], ['ms', 1e-3], ['us', 1e-6], ['ns', 1e-9]];
const kByteUnits = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]];

const kTokenUnits = [['T', 1e12], ['B', 1e9], ['M', 1e6], ['', 1]];

function unitOf(value, units) {
  return units.find(([, size]) => Math.abs(value) >= size) ?? units[units.length - 1];
}

function withUnit(value, units, digits = 5) {
  if (value === 0) return '0 ' + (units === kTimeUnits ? 's' : 'B');
  const [name, size] = unitOf(value, units);
  return `${significant(value / size, digits)} ${name}`.trim();
}

const seconds = (value, digits) => withUnit(value, kTimeUnits, digits);
const bytes = (value, digits = 4) => withUnit(value, kByteUnits, digits);

// "$7.43 M", "$512".
function money(value, digits) {
  const large = Math.abs(value) >= 1e6, shown = Number((large ? value / 1e6 : value).toPrecision(digits));
  return `$${significant(shown, digits)}${large ? ' M' : ''}`;
}

function show(value, kind) {
  if (value === null || value === undefined) return '-';
  if (typeof value !== 'number') return String(value);
  switch (kind) {
    case 'seconds': return seconds(value);
    case 'bytes': return bytes(value);
    case 'share': return fixed(100 * value, 2) + '%';
    case 'rate': return significant(value, 5);
    case 'money': return money(value, 4);
    case 'flag': return value ? 'yes' : 'no';
    default: return Number.isInteger(value) ? String(value) : significant(value, 6);
  }
}

// The same in the digits that a band leaves sure; all of them without one.
function showSure(value, kind, digits) {
  if (typeof value !== 'number' || value === 0 || digits === null) return show(value, kind);
  if (kind === 'seconds') return seconds(Number(value.toPrecision(digits)), digits);
  if (kind === 'money') return money(value, digits);
  const shown = Number((kind === 'share' ? 100 * value : value).toPrecision(digits));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(shown))));
  return fixed(shown, decimals) + (kind === 'share' ? '%' : '');
}

const counted = (count, thing) => `${count.toLocaleString('en-US')} ${thing}${count === 1 ? '' : thing.endsWith('ch') ? 'es' : 's'}`;

// For a POSIX shell.
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`;
}

const rgbOf = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));

// The step of 1, 2 or 5 times a power of ten that gives at most `most` ticks in `span`.
function stepFor(span, most) {
  const least = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find(factor => factor * power >= least) ?? 10);
}
