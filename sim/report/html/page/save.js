// A chart as a file: drawn once more as SVG or PNG, under its title and over its legend.

const kLegends = {};  // entries by the id of the legend: [fill, text, [shape]]
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
