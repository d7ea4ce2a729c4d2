// Two rows of a plan side by side: passes of all devices on one scale of time, and under them the memory of the fullest.

const kSideMemory = 70;

class Side {
  constructor(end) {
    this.name = byId(`side-${end}-name`);
    this.plot = new Plot(byId(`side-${end}`), 100, (...to) => this.draw(...to));
    this.plot.canvas.setAttribute('role', 'img');
  }

  open(row) {
    const {result, timeline} = results[row];
    this.data = decoded(timeline);
    this.seconds = this.data?.seconds ?? 0;
    this.limit = planned[row].plan.memory_limit_bytes;
    this.devices = result.devices;
    const peaks = result.devices.map(each => each.peak_memory_bytes ?? 0);
    this.fullest = peaks.indexOf(Math.max(...peaks));
    const missing = this.data ? '' : report.run ? ', being run' : ', not drawn on this page';
    this.name.textContent = `${nameOfRow(row)}: ${seconds(expectedSeconds(row), 4)}, ${bytes(result.peak_memory_bytes)} of ${bytes(this.limit)}${missing}`;
    this.plot.canvas.setAttribute('aria-label', this.name.textContent);
    this.plot.canvas.parentElement.hidden = !this.data;
    if (!this.data) return;
    this.row = Math.max(2, Math.min(14, Math.floor(170 / this.data.devices)));
    this.plot.setHeight(this.data.devices * this.row + 8 + kSideMemory + kAxis);
  }

  // `most`: the seconds that the width stands for.
  show(most) {
    this.most = most;
    this.plot.draw();
  }

  draw(context, width) {
    if (!this.data) return;
    this.scale = (width - 2) / this.most * this.seconds / kWhole;
    for (let device = 0; device < this.data.devices; ++device) this.drawDevice(context, device);
    this.drawMemory(context, width, this.data.devices * this.row + 8);
    this.drawSeconds(context, width, this.data.devices * this.row + 8 + kSideMemory);
  }

  drawDevice(context, device) {
    const {first, start, length, classes, ofClass} = this.data;
    context.fillStyle = colours.bar;
    context.fillRect(0, device * this.row, kWhole * this.scale, this.row - 1);
    for (let pass = first[device]; pass < first[device + 1]; ++pass) {
      const parts = classes[ofClass[pass]], high = (this.row - 1) / parts.length;
      parts.forEach(({fill}, i) => {
        context.fillStyle = fill;
        context.fillRect(start[pass] * this.scale, device * this.row + i * high, Math.max(length[pass] * this.scale, 0.3), high);
      });
    }
  }

  // Constant bytes, activations above them, and the limit.
  drawMemory(context, width, top) {
    const {memory} = this.data;
    if (!memory) return;
    const by = this.devices[this.fullest].peak_memory_by_category ?? {};
    const held = kCategories.reduce((sum, [name]) => sum + (by[name] ?? 0), 0);
    const y = size => top + kSideMemory * (1 - size / this.limit / 1.05);
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
