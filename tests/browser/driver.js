// Code shared by the scripts of this folder (browser.h).

// Until what was asked for has been drawn (browser.h has frames follow the same time).
const pause = () => new Promise(done => setTimeout(done, 100));

// At the end: leaves what was found in the document.
function leave(found) {
  found.faults = faults;
  const result = document.createElement('pre');
  result.id = 'found';
  result.textContent = `found:${encodeURIComponent(JSON.stringify(found))}:found`;
  document.body.append(result);
}
