// A live page: asks as one types, shows each answer as the page of a plan, and runs the rows that are opened.

// The header and the body of a report before anything is shown in them.
const kFresh = [...document.querySelectorAll('header, main')].map(node => node.cloneNode(true));
const kPause = 250;  // milliseconds without a change, after which the form is asked

function fresh() {
  for (const node of kFresh) document.querySelector(node.localName).replaceWith(node.cloneNode(true));
}

function say(text, wrong = false) {
  byId('ask-status').textContent = text;
  byId('ask-status').className = wrong ? 'wrong' : 'quiet';
}

function progressText({seconds: elapsed, points, decided, best, again}) {
  const number = count => count.toLocaleString('en-US');
  const what = again ? `${counted(again, 'row')} again, with contention`
    : points ? `${number(decided)} of ${number(points)} layouts decided${best ? `, best ${seconds(best, 3)}` : ''}`
    : 'bounds of all layouts';
  return elapsed < 1 ? what : `${what}; ${Math.floor(elapsed)} s`;
}

async function post(place, value, signal) {
  const response = await fetch(place, {method: 'POST', body: JSON.stringify(value), signal});
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

let shownNumber = 0;  // of the answer that is shown

// An answer that differs in nothing stays as it is, with the row that is open.
function showAnswerOf({number, report}) {
  if (number === shownNumber) return;
  shownNumber = number;
  report.run = async row => (await post('api/run', {answer: number, row})).json();
  fresh();
  document.body.classList.remove('empty');
  showReport(report);
}

const daysText = days => `${showSure(days, 'number', 3)} days`;

function showFailures({days, days_with_failures: all, goodput, per_1000_node_days: rate, tokens}) {
  byId('ask-failures').hidden = false;
  byId('ask-failures').textContent = goodput === null ? 'With so many failures no run would end, or too slowly to simulate here.'
    : `The fastest row takes ${daysText(all)} for ${withUnit(tokens, kTokenUnits)} tokens: ${daysText(days)} of training, the rest checkpoints, ` +
      `failures (${significant(rate, 3)} of 1,000 nodes a day) and restarts.`;
}

class Asker {
  constructor() {
    this.running = null;  // aborts the question that is being answered
    this.timer = 0;
    this.form = new Form(() => this.later());
    byId('ask-stop').addEventListener('click', () => this.stop());
    this.ask();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), kPause);
  }

  stop() {
    clearTimeout(this.timer);
    this.running?.abort();
    this.end('stopped');
  }

  end(text, wrong) {
    this.running = null;
    byId('ask-stop').hidden = true;
    document.body.classList.remove('waiting');
    say(text, wrong);
  }

  async ask() {
    this.running?.abort();
    const unfinished = this.form.unfinished();
    if (unfinished) return this.end(unfinished);
    const mine = this.running = new AbortController();
    byId('ask-stop').hidden = false;
    document.body.classList.add('waiting');
    say('searching');
    try {
      const begin = performance.now();
      for await (const line of linesOf(await post('api/plan', this.form.question(), mine.signal))) {
        if (mine !== this.running) return;
        this.take(line);
      }
      if (mine === this.running) this.end(`answered in ${seconds((performance.now() - begin) / 1000, 2)}`);
    } catch (error) {
      if (mine === this.running) this.end(error.message, true);
    }
  }

  take({progress, answer, failures, error, stopped}) {
    if (progress) say(progressText(progress));
    if (answer) showAnswerOf(answer);
    if (answer) document.body.classList.remove('waiting');
    if (failures) showFailures(failures);
    if (error) throw new Error(error);
    if (stopped) throw new Error('ended by the server, or by a question from another page');
  }
}

document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
document.body.classList.add('empty');
new Asker();
