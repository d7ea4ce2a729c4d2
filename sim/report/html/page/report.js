// The data of a page of its own, which the components show (data.js).
const report = JSON.parse(byId('data').textContent);

