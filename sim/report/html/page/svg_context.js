// The part of a canvas's context that charts use, written as SVG.

const rounded = value => String(Math.round(value * 100) / 100);

class SvgPath {
  constructor() { this.d = ''; }
  moveTo(x, y) { this.d += `M${rounded(x)} ${rounded(y)}`; }
  lineTo(x, y) { this.d += `${this.d === '' ? 'M' : 'L'}${rounded(x)} ${rounded(y)}`; }
  closePath() { this.d += 'Z'; }
  rect(x, y, wide, high) { this.d += `M${rounded(x)} ${rounded(y)}h${rounded(wide)}v${rounded(high)}h${rounded(-wide)}Z`; }
  circle(x, y, r) { this.d += `M${rounded(x + r)} ${rounded(y)}A${rounded(r)} ${rounded(r)} 0 1 1 ${rounded(x - r)} ${rounded(y)}A${rounded(r)} ${rounded(r)} 0 1 1 ${rounded(x + r)} ${rounded(y)}Z`; }
}

// `arc` draws whole circles.
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
  translate(x, y) { this.group(`transform="translate(${rounded(x)} ${rounded(y)})"`); }
  rotate(angle) { this.group(`transform="rotate(${rounded(angle * 180 / Math.PI)})"`); }
  setLineDash(dash) { this.dash = dash; }

  beginPath() { this.path = new SvgPath(); }
  newPath() { return new SvgPath(); }
  moveTo(x, y) { this.path.moveTo(x, y); }
  lineTo(x, y) { this.path.lineTo(x, y); }
  closePath() { this.path.closePath(); }
  rect(...box) { this.path.rect(...box); }
  arc(x, y, r) { this.path.circle(x, y, r); }

  get alpha() { return this.globalAlpha < 1 ? ` opacity="${rounded(this.globalAlpha)}"` : ''; }
  get pen() {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${rounded(this.lineWidth)}"${dash}${this.alpha}`;
  }
  box(x, y, wide, high) { return `<rect x="${rounded(x)}" y="${rounded(y)}" width="${rounded(wide)}" height="${rounded(high)}"`; }
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
  text(text, x, y, look, fit = '') {
    const anchor = {center: 'middle', right: 'end'}[this.textAlign] ?? 'start';
    const [, bold = '', size] = /^(bold )?(\d+)px/.exec(this.font);
    const escaped = String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    this.parts.push(`<text x="${rounded(x)}" y="${rounded(y + 0.36 * size)}" font-size="${size}"${bold ? ' font-weight="bold"' : ''} ` +
      `text-anchor="${anchor}" ${fit}${look}>${escaped}</text>`);
  }
  fillText(text, x, y, most = Infinity) {
    const fit = this.measureText(text).width > most ? `textLength="${rounded(most)}" lengthAdjust="spacingAndGlyphs" ` : '';
    this.text(text, x, y, `fill="${this.fillStyle}"${this.alpha}`, fit);
  }
  strokeText(text, x, y) { this.text(text, x, y, `${this.pen} stroke-linejoin="round"`); }

  document(width, height) {
    const box = el('div');
    box.innerHTML = '<svg></svg>';  // which knows its namespace: the page names no address
    return `<svg xmlns="${box.firstChild.namespaceURI}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">\n${this.parts.join('\n')}\n</svg>\n`;
  }
}

const newPath = context => context.newPath?.() ?? new Path2D();
