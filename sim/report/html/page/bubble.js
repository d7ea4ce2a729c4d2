// Idle time by cause, as bars: a bar per device of the open result, or per result.

// In this order light and dark alternate, so that neighbours stay apart in grey.
const kCauses = [['warm_up', '#2b5c9e'], ['cool_down', '#a9cdf0'], ['transfer', '#a63f0c'], ['collective', '#f5c95f'],
  ['host_copy', '#4f2472'], ['imbalance', '#dcbcec'], ['order', '#23734f']];
const causeName = cause => cause.replaceAll('_', '-');

// The shares of a device's period: {name, shares, idle}.
function barOfDevice(device) {
  const period = device.busy_seconds + device.idle_seconds;
  const shares = kCauses.map(([cause]) => (device.idle_seconds_by_cause?.[cause] ?? 0) / period);
  return {name: `device ${device.device}`, shares, idle: device.idle_seconds / period};
}

function barOfResult(row) {
  const bars = results[row].result.devices.map(barOfDevice);
  const mean = of => bars.reduce((sum, bar) => sum + of(bar), 0) / bars.length;
  return {name: nameOfRow(row), shares: kCauses.map((_, i) => mean(bar => bar.shares[i])), idle: mean(bar => bar.idle)};
}

class Bubble {
  constructor() {
    this.by = byId('bubble-by');
    const several = rowCount > 1;
    this.by.append(...(several ? [el('option', {value: 'result'}, 'all results, mean of devices')] : []),
      el('option', {value: 'device'}, several ? 'the open result, by device' : 'each device'));
    this.by.addEventListener('change', () => this.update());
    this.plot = new Plot(byId('bubble'), 100, (...to) => this.draw(...to));
    this.canvasEvents();
    state.on('row', () => this.update());
    state.on('shown', () => this.update());
    this.update();
  }

  update() {
    const ofDevices = this.by.value === 'device';
    const rows = state.shown.filter(row => results[row].result.devices?.length > 0);
    this.rows = ofDevices ? null : rows;
    this.bars = ofDevices ? (results[state.row].result.devices ?? []).map(barOfDevice) : rows.map(barOfResult);
    this.high = Math.max(4, Math.min(24, Math.floor(600 / Math.max(this.bars.length, 1))));
    const most = 400;  // bars of 4 pixels; the table below has all
    this.shown = this.bars.slice(0, most);
    this.plot.setHeight(this.shown.length * this.high + kAxis);
    this.plot.title = `Idle time as a share of the iteration, by cause${ofDevices ? `: ${nameOfRow(state.row)}` : ''}`;
    byId('bubble').setAttribute('role', 'img');
    byId('bubble').setAttribute('aria-label', 'Idle time by cause; the same as a table below');
    const used = kCauses.map((cause, i) => [cause, this.bars.some(bar => bar.shares[i] > 0)]).filter(([, any]) => any);
    legend('bubble-legend', used.map(([[cause, fill]]) => [fill, causeName(cause)]));
    this.fillTable();
    this.plot.draw();
  }

  fillTable() {
    const percent = value => show(value, 'share');
    plainTable('bubble-table', [{name: ofDevicesName(this.rows), values: this.bars.map(bar => bar.name)},
      {name: 'idle', values: this.bars.map(bar => bar.idle), format: percent},
      ...kCauses.map(([cause], i) => (
        {name: causeName(cause), values: this.bars.map(bar => bar.shares[i]), format: percent}))], 2000);
  }

  draw(context, width) {
    const names = this.shown.map(bar => bar.name.length > 34 ? bar.name.slice(0, 33) + '\u2026' : bar.name);
    this.left = 14 + Math.max(50, ...names.map(name => context.measureText(name).width));
    const most = Math.max(1e-9, ...this.shown.map(bar => bar.shares.reduce((sum, share) => sum + share, 0)));
    this.scale = (width - this.left - 70) / most;
    const every = Math.ceil(12 / this.high);
    this.shown.forEach((bar, i) => {
      const y = i * this.high;
      let x = this.left;
      bar.shares.forEach((share, cause) => {
        const wide = share * this.scale;
        if (wide <= 0) return;
        context.fillStyle = kCauses[cause][1];
        context.fillRect(x, y + 1, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), this.high - (this.high > 8 ? 4 : 1));
        x += wide;
      });
      if (i % every !== 0) return;
      context.fillStyle = this.rows && this.rows[i] === state.row ? colours.accent : colours.ink;
      context.textAlign = 'right';
      context.fillText(names[i], this.left - 8, y + this.high / 2 - 1);
      context.textAlign = 'left';
      context.fillText(show(bar.idle, 'share'), x + 6, y + this.high / 2 - 1);
    });
    context.textAlign = 'center';
    context.fillStyle = colours.quiet;
    for (const [value, text] of ticksOf(0, most, 'share', (width - this.left) / 90)) {
      context.fillText(text, this.left + value * this.scale, this.shown.length * this.high + 12);
    }
  }

  canvasEvents() {
    const canvas = this.plot.canvas;
    const barAt = event => Math.floor((event.clientY - canvas.getBoundingClientRect().top) / this.high);
    canvas.addEventListener('pointermove', event => {
      const bar = this.shown[barAt(event)];
      if (!bar) return tip.hide();
      const parts = kCauses.map(([cause], i) => [causeName(cause), bar.shares[i]]).filter(([, share]) => share > 0);
      const lines = parts.map(([name, share]) => `${name} ${show(share, 'share')}`);
      tip.show([`${bar.name}: idle ${show(bar.idle, 'share')}`, ...lines].join('\n'), event.clientX, event.clientY);
    });
    canvas.addEventListener('pointerleave', () => tip.hide());
    canvas.addEventListener('click', event => {
      const row = this.rows?.[barAt(event)];
      if (row !== undefined) state.open(row);
    });
  }
}

const ofDevicesName = rows => rows ? 'result' : 'device';

function startBubble() {
  if (report.sweep || !(report.run || results.some(({result}) => result.devices?.length > 0))) {
    byId('bubble-part').hidden = true;
    return;
  }
  new Bubble();
}
