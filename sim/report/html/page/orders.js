// Two orders of passes, A above B on one scale of time, and what is said of where they part.

// A frame around the pass of each device where its order parts from the other's.
function frames(side, marked) {
  const {data} = side;
  return marked.map((position, device) => position === null ? -1 : data.first[device] + position)
    .filter((pass, device) => pass >= 0 && pass < data.first[device + 1]);
}

function ordersTable({title, rows: [head, ...rows], left}) {
  const cell = (tag, text, i, properties) => el(tag, {className: i < left ? 'plain text' : 'plain', ...properties}, text);
  return el('div', {}, el('h3', {}, title), el('div', {className: 'table'}, el('table', {'aria-label': title},
    el('thead', {}, el('tr', {}, ...head.map((text, i) => cell('th', text, i, {scope: 'col'})))),
    el('tbody', {}, ...rows.map(row => el('tr', {}, ...row.map((text, i) => cell('td', text, i))))))));
}

function startOrders() {
  if (!report.orders) return;
  byId('orders-part').hidden = false;
  const {sentences, marked, tables} = report.orders;
  byId('orders-note').replaceChildren(...sentences.slice(1).map(text => el('p', {}, text)));
  byId('orders-tables').replaceChildren(...tables.map(ordersTable));
  const sides = [new Side('a'), new Side('b')];
  sides.forEach((side, row) => {
    side.open(row);
    if (side.data) side.framed = frames(side, marked);
  });
  sideLegend('side-legend', sides, [['var(--critical)', 'frame: first pass in another order']]);
  const most = Math.max(...sides.map(side => side.seconds));
  for (const side of sides) side.show(most);
}
