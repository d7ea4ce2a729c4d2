// A canvas that is sharp on every screen, follows its width, and is drawn once per frame at most.

const colours = {};  // of the theme, by the names of page.css
// Messages, copies and collectives beside passes; colours as of the bubble's causes.
const kBeside = {message: '#c2541b', 'copy out': '#7a4da3', 'copy in': '#b58fd6', collective: '#f5c95f', vocabulary: '#d9a514'};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['page', 'panel', 'ink', 'quiet', 'line', 'grid', 'accent', 'accent-ink', 'chosen', 'critical', 'bar']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
}

function startTheme() {
  const button = byId('theme');
  const apply = theme => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === 'dark' ? 'Light' : 'Dark';
    readColours();
    state.tell('theme');
  };
  button.addEventListener('click', () => apply(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  // A live page keeps the theme from one report to the next.
  apply(document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'));
}

// Above passes: boxes under those of the critical path, and lines from one to the next.
function strokeCritical(context, lines, boxes) {
  context.strokeStyle = colours.panel;
  context.lineWidth = 3.5;
  context.stroke(lines);
  context.lineWidth = 2;
  context.stroke(boxes);
  context.fillStyle = context.strokeStyle = colours.critical;
  context.lineWidth = 1.5;
  context.stroke(lines);
  context.fill(boxes);
}

const kFont = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

class Plot {
  // `draw(context, width, height)` in CSS pixels.
  constructor(canvas, height, draw) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.paint = draw;
    this.waiting = false;
    this.width = canvas.clientWidth;  // asked for once per frame: it makes the browser lay out
    this.setHeight(height);
    canvas.after(saveButtons(this));
    new ResizeObserver(() => this.draw()).observe(canvas);
    state.on('theme', () => this.draw());
  }
  setHeight(height) {
    this.height = height;
    this.canvas.style.height = height + 'px';
  }
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.drawNow(); });
  }
  drawNow() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    const wide = Math.round(this.width * scale), high = Math.round(this.height * scale);
    if (wide === 0) return;  // not shown
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = kFont;
    this.context.textBaseline = 'middle';
    this.paint(this.context, this.width, this.height);
  }
}

const tip = {
  node: byId('tip'),
  show(text, x, y) {
    this.node.hidden = false;
    if (this.node.textContent !== text) this.node.textContent = text;
    const {width, height} = this.node.getBoundingClientRect();
    this.node.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + 'px';
    this.node.style.top = (y + 18 + height > innerHeight ? y - height - 10 : y + 18) + 'px';
  },
  hide() { this.node.hidden = true; },
};

// Ticks of [low, high] at round numbers: [[value, text]], all in the unit of the largest.
function ticksOf(low, high, kind, most) {
  if (!(high - low > 1e-12 * Math.abs(high))) return [];  // steps beyond a number's digits
  let size = 1, name = '';
  if (kind === 'seconds' || kind === 'bytes') {
    [name, size] = unitOf(Math.max(Math.abs(low), Math.abs(high)), kind === 'seconds' ? kTimeUnits : kByteUnits);
  } else if (kind === 'share') {
    [name, size] = ['%', 0.01];
  }
  const step = stepFor((high - low) / size, most);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(low / size / step - 1e-9); i * step <= high / size + step * 1e-9; ++i) {
    ticks.push([i * step * size, `${fixed(i * step + 0, Math.min(digits, 12))}${name === '%' ? '' : ' '}${name}`.trim()]);
  }
  return ticks;
}

function legend(id, entries) {
  kLegends[id] = entries;
  byId(id).replaceChildren(...entries.map(([fill, text]) => el('span', {}, el('i', {style: `background:${fill}`}), text)));
}

// A text, with a button that copies it.
function copyable(title, text, wrap = false) {
  const button = el('button', {type: 'button'}, 'Copy');
  const pre = el('pre', {className: wrap ? 'wrap' : '', tabIndex: 0}, text);
  button.addEventListener('click', async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // pages from a file may not: select it, and let the browser copy
      const range = document.createRange();
      range.selectNodeContents(pre);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done = document.execCommand('copy');
    }
    button.textContent = done ? 'Copied' : 'Selected';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return el('div', {className: 'copy'}, el('div', {className: 'bar'}, el('span', {className: 'quiet'}, title), button), pre);
}
