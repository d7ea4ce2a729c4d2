// Puts the parts together.

startTheme();
startHeader();
startPicker();
startCards();
const pareto = startPareto();
const heat = startHeat();
startDetail();
startTable();
startFilter();
const timeline = startTimeline();
startMemory(timeline);
startBubble();
startOrders();
const difference = startDifference();
const whatIf = startWhatIf();

// A live page runs a row when it is first opened or compared.
async function runRow(row) {
  const kept = report.plan.rows[row];
  if (kept.asked) return;
  kept.asked = true;
  try {
    Object.assign(kept, await report.run(row));
  } catch (error) {
    kept.reason = error.message;
  }
  results[row] = resultOfPlan(planned[row], row);
  if (row === state.row) state.tell('row');
  difference?.showSides();
}

function runShown() {
  const rows = difference ? [Number(difference.from.value), Number(difference.to.value)] : [];
  for (const row of [state.row, ...rows]) runRow(row);
}

if (report.run) {
  state.on('row', runShown);
  state.on('compared', runShown);
  runShown();
}
