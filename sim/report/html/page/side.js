// Two rows side by side: passes of all devices on one scale of time, and under them the memory of the fullest.

const kSideMemory = 70;

// One legend for two sides: their passes, collectives and memory, then `more`. A saved side has it too.
function sideLegend(id, sides, more = []) {
  const timelines = sides.map(side => side.data).filter(Boolean);
  const collective = timelines.some(({beside}) => beside?.classes.some(({kind}) => kind === 'collective'));
  const memory = timelines.some(data => data.memory), others = memory && sides.some(side => side.held > 0);
  legend(id, [...passLegend(timelines), ...(collective ? [[kBeside.collective, 'collective']] : []),
    ...(memory ? [[kActivations, 'activations of the fullest device']] : []),
    ...(others ? [[kCategories[0][1], 'its other bytes']] : []), ...more]);
  for (const side of sides) kLegends[`${side.plot.canvas.id}-legend`] = kLegends[id];
}

class Side {
  constructor(end) {
    this.name = byId(`side-${end}-name`);
    this.plot = new Plot(byId(`side-${end}`), 100, (...to) => this.draw(...to));
    this.plot.canvas.setAttribute('role', 'img');
  }

  open(row) {
    const {result, run, timeline} = results[row];
    this.data = decoded(timeline);
    this.seconds = this.data?.seconds ?? 0;
    this.framed = [];  // passes
    this.limit = run.document.scenario?.memory?.capacity_bytes ?? null;
    const peaks = result.devices.map(each => each.peak_memory_bytes ?? each.peak_activation_bytes ?? 0);
    const most = Math.max(0, ...peaks);
    this.fullest = peaks.indexOf(most);
    const by = result.devices[this.fullest]?.peak_memory_by_category ?? {};
    this.held = kCategories.reduce((sum, [name]) => sum + (by[name] ?? 0), 0);  // bytes beside activations
    this.top = 1.05 * (this.limit ?? (most || 1));
    this.name.textContent = this.nameOf(row, result.peak_memory_bytes ?? most);
    this.plot.canvas.setAttribute('aria-label', this.name.textContent);
    this.plot.canvas.parentElement.hidden = !this.data;
    if (!this.data) return;
    const [high, room] = report.orders ? [22, 260] : [14, 170];
    this.row = Math.max(2, Math.min(high, Math.floor(room / this.data.devices)));
    this.under = this.data.memory ? kSideMemory : 0;
    this.plot.setHeight(this.data.devices * this.row + 8 + this.under + kAxis);
  }

  nameOf(row, peak) {
    const missing = this.data ? '' : report.run ? ', being run' : ', not drawn on this page';
    const memory = peak > 0 ? `, ${bytes(peak)}${this.limit === null ? '' : ` of ${bytes(this.limit)}`}` : '';
    return `${nameOfRow(row)}: ${seconds(expectedSeconds(row), 4)}${memory}${missing}`;
  }

  // `most`: the seconds that the width stands for.
  show(most) {
    this.most = most;
    this.plot.draw();
  }

  draw(context, width) {
    if (!this.data) return;
    this.scale = (width - 2) / this.most * this.seconds / kWhole;
    const under = this.data.devices * this.row + 8;
    for (let device = 0; device < this.data.devices; ++device) this.drawDevice(context, device);
    for (const pass of this.framed) this.drawFrame(context, pass);
    this.drawMemory(context, width, under);
    this.drawSeconds(context, width, under + this.under);
  }

  drawDevice(context, device) {
    const {first, start, length, classes, ofClass} = this.data;
    context.fillStyle = colours.bar;
    context.fillRect(0, device * this.row, kWhole * this.scale, this.row - 1);
    for (let pass = first[device]; pass < first[device + 1]; ++pass) {
      const parts = classes[ofClass[pass]], high = (this.row - 1) / parts.length;
      const x = start[pass] * this.scale, wide = length[pass] * this.scale;
      parts.forEach((part, i) => {
        const y = device * this.row + i * high;
        context.fillStyle = part.fill;
        context.fillRect(x, y, Math.max(wide - (wide > 4 ? 1 : 0), 0.3), high);
        drawNumber(context, this.data, pass, i, part, {x, y, wide, high});
      });
    }
    this.drawCollectives(context, device);
  }

  drawCollectives(context, device) {
    const {beside} = this.data;
    for (let i = beside?.first[device]; i < beside?.first[device + 1]; ++i) {
      if (beside.classes[beside.ofClass[i]].kind !== 'collective') continue;
      context.fillStyle = kBeside.collective;
      context.fillRect(beside.start[i] * this.scale, device * this.row, Math.max(beside.length[i] * this.scale, 0.5), this.row - 1);
    }
  }

  drawFrame(context, pass) {
    const device = upperBound(this.data.first, pass, 0, this.data.first.length) - 1;
    context.strokeStyle = colours.critical;
    context.lineWidth = 2;
    context.strokeRect(this.data.start[pass] * this.scale, device * this.row, Math.max(this.data.length[pass] * this.scale, 2), this.row - 1);
  }

  // Constant bytes, activations above them, and the limit.
  drawMemory(context, width, top) {
    const {memory} = this.data;
    if (!memory) return;
    const {held} = this;
    const y = size => top + kSideMemory * (1 - size / this.top);
    context.fillStyle = kCategories[0][1];
    context.fillRect(0, y(held), kWhole * this.scale, y(0) - y(held));
    const begin = memory.first[this.fullest], end = memory.first[this.fullest + 1];
    const x = i => (i < end ? memory.at[i] : kWhole) * this.scale;
    context.beginPath();
    context.moveTo(0, y(held));
    for (let i = begin; i < end; ++i) {
      context.lineTo(x(i), y(held + memory.bytes[i]));
      context.lineTo(x(i + 1), y(held + memory.bytes[i]));
    }
    context.lineTo(x(end), y(held));
    context.fillStyle = kActivations;
    context.fill();
    if (this.limit === null) return;
    context.fillStyle = colours.critical;
    context.fillRect(0, y(this.limit), width, 1);
  }

  drawSeconds(context, width, y) {
    context.textAlign = 'center';
    context.fillStyle = colours.quiet;
    for (const [value, text] of ticksOf(0, this.most, 'seconds', width / 90)) {
      context.fillText(text, Math.max(14, Math.min(value / this.most * width, width - 26)), y + 14);
    }
  }
}
