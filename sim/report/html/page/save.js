// A chart as a file: drawn once more as SVG or PNG, under its title and over its legend.

const kLegends = {};  // entries by the id of the legend: [fill, text, [shape]]
const two = value => String(Math.round(value * 100) / 100);

class SvgPath {
  constructor() { this.d = ''; }
  moveTo(x, y) { this.d += `M${two(x)} ${two(y)}`; }
  lineTo(x, y) { this.d += `${this.d === '' ? 'M' : 'L'}${two(x)} ${two(y)}`; }
  closePath() { this.d += 'Z'; }
  rect(x, y, wide, high) { this.d += `M${two(x)} ${two(y)}h${two(wide)}v${two(high)}h${two(-wide)}Z`; }
  circle(x, y, r) { this.d += `M${two(x + r)} ${two(y)}A${two(r)} ${two(r)} 0 1 1 ${two(x - r)} ${two(y)}A${two(r)} ${two(r)} 0 1 1 ${two(x + r)} ${two(y)}Z`; }
}

// The part of a canvas's context that charts use, as SVG. `arc` draws whole circles.
class SvgContext {
  constructor(measuring) {
    this.measuring = measuring;
    this.parts = [];
    this.clips = 0;
    this.groups = 0;  // that are open
    this.saved = [];
    Object.assign(this, {fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, textAlign: 'left', font: kFont, dash: []});
    this.path = new SvgPath();
  }
  save() { this.saved.push([this.groups, this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.textAlign, this.font, this.dash]); }
  restore() {
    let groups;
    [groups, this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.textAlign, this.font, this.dash] = this.saved.pop();
    for (; this.groups > groups; --this.groups) this.parts.push('</g>');
  }
  group(attributes) {
    this.parts.push(`<g ${attributes}>`);
    ++this.groups;
  }
  clip() {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.d}"/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }
  translate(x, y) { this.group(`transform="translate(${two(x)} ${two(y)})"`); }
  rotate(angle) { this.group(`transform="rotate(${two(angle * 180 / Math.PI)})"`); }
  setLineDash(dash) { this.dash = dash; }

  beginPath() { this.path = new SvgPath(); }
  newPath() { return new SvgPath(); }
  moveTo(x, y) { this.path.moveTo(x, y); }
  lineTo(x, y) { this.path.lineTo(x, y); }
  closePath() { this.path.closePath(); }
  rect(...box) { this.path.rect(...box); }
  arc(x, y, r) { this.path.circle(x, y, r); }

  get alpha() { return this.globalAlpha < 1 ? ` opacity="${two(this.globalAlpha)}"` : ''; }
  get pen() {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${two(this.lineWidth)}"${dash}${this.alpha}`;
  }
  box(x, y, wide, high) { return `<rect x="${two(x)}" y="${two(y)}" width="${two(wide)}" height="${two(high)}"`; }
  fill(path = this.path) { this.parts.push(`<path d="${path.d}" fill="${this.fillStyle}"${this.alpha}/>`); }
  stroke(path = this.path) { if (path.d !== '') this.parts.push(`<path d="${path.d}" ${this.pen}/>`); }
  fillRect(x, y, wide, high) {
    if (wide > 0 && high > 0) this.parts.push(`${this.box(x, y, wide, high)} fill="${this.fillStyle}"${this.alpha}/>`);
  }
  strokeRect(x, y, wide, high) { this.parts.push(`${this.box(x, y, wide, high)} ${this.pen}/>`); }
  measureText(text) {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }
  text(text, x, y, look) {
    const anchor = {center: 'middle', right: 'end'}[this.textAlign] ?? 'start';
    const [, bold = '', size] = /^(bold )?(\d+)px/.exec(this.font);
    const escaped = String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    this.parts.push(`<text x="${two(x)}" y="${two(y + 0.36 * size)}" font-size="${size}"${bold ? ' font-weight="bold"' : ''} ` +
      `text-anchor="${anchor}" ${look}>${escaped}</text>`);
  }
  fillText(text, x, y) { this.text(text, x, y, `fill="${this.fillStyle}"${this.alpha}`); }
  strokeText(text, x, y) { this.text(text, x, y, `${this.pen} stroke-linejoin="round"`); }

  document(width, height) {
    const box = el('div');
    box.innerHTML = '<svg></svg>';  // which knows its namespace: the page names no address
    return `<svg xmlns="${box.firstChild.namespaceURI}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">\n${this.parts.join('\n')}\n</svg>\n`;
  }
}

const newPath = context => context.newPath?.() ?? new Path2D();

const kEdge = 16, kTitleHigh = 28, kLegendHigh = 20;

// Where the entries of a chart's legend stand, line by line: [{x, line, fill, text, shape}].
function placedLegend(plot) {
  let x = 0, line = 0;
  return (kLegends[`${plot.canvas.id}-legend`] ?? []).map(([fill, text, shape]) => {
    const wide = 20 + plot.context.measureText(text).width + 16;
    if (x > 0 && x + wide > plot.width) [x, line] = [0, line + 1];
    const placed = {x, line, fill, text, shape};
    x += wide;
    return placed;
  });
}

// The colours of a legend's fill: two of a gradient, a theme's by its name.
const fillsOf = fill => /^var\(--(\w+)\)$/.test(fill) ? [colours[fill.slice(6, -1)]] : fill.match(/#[0-9a-f]{6}/gi) ?? [colours.quiet];

function drawLegend(context, entries, top) {
  for (const {x, line, fill, text, shape} of entries) {
    const y = top + kLegendHigh * (line + 0.5), fills = fillsOf(fill);
    fills.forEach((each, i) => {
      context.fillStyle = each;
      if (shape) {
        mark(context, shape, x + 7, y, 5);
        context.fill();
      } else {
        context.fillRect(x + i * 14 / fills.length, y - 6, 14 / fills.length, 12);
      }
    });
    context.fillStyle = colours.ink;
    context.textAlign = 'left';
    context.fillText(text, x + 20, y);
  }
}

// [width, height] of the file, and what draws it into a context.
function pageOfPlot(plot) {
  const legend = placedLegend(plot);
  const lines = legend.length > 0 ? legend[legend.length - 1].line + 1 : 0;
  const size = [plot.width + 2 * kEdge, kTitleHigh + plot.height + lines * kLegendHigh + 2 * kEdge];
  const draw = context => {
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, ...size);
    context.save();
    context.translate(kEdge, kEdge);
    context.font = kFont.replace('11px', 'bold 13px');
    context.textBaseline = 'middle';
    context.fillStyle = colours.ink;
    context.fillText(plot.title ?? plot.canvas.getAttribute('aria-label') ?? '', 0, 8);
    context.font = kFont;
    context.translate(0, kTitleHigh);
    plot.paint(context, plot.width, plot.height);
    drawLegend(context, legend, plot.height);
    context.restore();
  };
  return [size, draw];
}

function svgOfPlot(plot) {
  const [size, draw] = pageOfPlot(plot);
  const context = new SvgContext(plot.context);
  draw(context);
  plot.draw();  // the measuring has left another font
  return context.document(...size);
}

// Twice as sharp as the screen's pixels of CSS.
function canvasOfPlot(plot) {
  const [[width, height], draw] = pageOfPlot(plot);
  const canvas = el('canvas', {width: 2 * width, height: 2 * height});
  const context = canvas.getContext('2d');
  context.scale(2, 2);
  draw(context);
  return canvas;
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  el('a', {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function saveButtons(plot) {
  const button = (text, save) => {
    const node = el('button', {type: 'button', title: `Save this chart as ${text}`}, text);
    node.addEventListener('click', () => save(`${plot.canvas.id || 'chart'}.${text.toLowerCase()}`));
    return node;
  };
  return el('span', {className: 'save'},
    button('SVG', name => download(new Blob([svgOfPlot(plot)], {type: 'image/svg+xml'}), name)),
    button('PNG', name => canvasOfPlot(plot).toBlob(blob => download(blob, name), 'image/png')));
}
