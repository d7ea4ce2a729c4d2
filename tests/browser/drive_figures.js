// The labels of every drawing on a page of drawings (figures_test.cc) that its frame cuts.

function overhang(label, frame) {
  const box = label.getBoundingClientRect();
  if (box.width === 0) return 0;
  return Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
}

function cutLabels(holder) {
  const drawing = holder.shadowRoot.querySelector('svg');
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll('text')]
    .filter(label => overhang(label, frame) > 0.5)
    .map(label => `${holder.dataset.name}: ${label.textContent}`);
}

const drawings = [...document.querySelectorAll('[data-name]')];
leave({
  drawings: drawings.length,
  labels: drawings.reduce((sum, each) => sum + each.shadowRoot.querySelectorAll('text').length, 0),
  cut: drawings.flatMap(cutLabels),
});
