import type { AuditWords } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import { exampleOf, examples } from '../examples.js';
import {
  describeInputs,
  judgedWords,
  likelyOutputs,
  offerBeside,
  offerInputs,
  offerOutputs,
  option,
} from './choices.js';
import type { AuditAnswer, AuditQuestion, ListedFile, NamedFile } from './protocol.js';
import { showReport } from './report-frame.js';

const chosen = byId('chosen', HTMLElement);
const main = byId('main', HTMLElement);
const about = byId('about', HTMLElement);
const form = byId('form', HTMLFormElement);
const outcome = byId('outcome', HTMLElement);
const running = byId('running', HTMLElement);
const report = byId('report', HTMLElement);
const alternatives = byId('alternatives', HTMLElement);
const options = byId('options', HTMLDetailsElement);
const path = byId('path', HTMLSelectElement);
const output = byId('output', HTMLSelectElement);
const threads = byId('threads', HTMLInputElement);

/** What is on the page, replaced as a whole. */
interface State {
  readonly files: readonly NamedFile[];
  readonly listed: readonly ListedFile[];
  /** Null while nothing is judged or listed, but for one that has listed files and can judge them. */
  readonly worker: Worker | null;
  readonly isBusy: boolean;
  /** Addresses of what can be saved, to be released. */
  readonly addresses: readonly string[];
}
const page: { state: State } = {
  state: { files: [], listed: [], worker: null, isBusy: false, addresses: [] },
};

/** Stops what runs: a worker that is ended takes those that it started with it. */
function stop(): void {
  page.state.worker?.terminate();
  page.state = { ...page.state, worker: null, isBusy: false };
  running.hidden = true;
}

function say(kind: 'pass' | 'fail' | 'refused' | 'note', ...texts: readonly string[]): void {
  const lines = texts.map((text, i) => {
    const word = i === 0 ? (/^(PASS|FAIL)/.exec(text)?.[0] ?? '') : '';
    return create('p', {}, create('strong', {}, word), text.slice(word.length));
  });
  outcome.replaceChildren(create('div', { class: `verdict ${kind}` }, ...lines));
}

/** The worker that listed the files and waits, else a new one. */
function freeWorker(): Worker {
  const { worker, isBusy } = page.state;
  if (worker !== null && !isBusy) return worker;
  stop();
  return new Worker(new URL('./audit-worker.ts', import.meta.url), { type: 'module' });
}

/** Asks a worker, and hands each of its answers on until the last. */
function ask(question: AuditQuestion, take: (answer: AuditAnswer) => void): void {
  const worker = freeWorker();
  page.state = { ...page.state, worker, isBusy: true };
  worker.onmessage = ({ data }: MessageEvent<AuditAnswer>) => {
    if (data.kind === 'listed') page.state = { ...page.state, isBusy: false };
    else if (data.kind !== 'progress') stop();
    take(data);
  };
  worker.onerror = ({ message }) => {
    stop();
    say('refused', `The audit broke off: ${message || 'its worker did not start'}.`);
  };
  worker.postMessage(question);
}

/** The files that may hold a problem: those with q, else those with its usual names, else all that have three tensors. */
function problemsOf(listed: readonly ListedFile[]): readonly ListedFile[] {
  const read = listed.flatMap((file) => ('tensors' in file ? [file] : []));
  const own = read.filter(({ tensors }) => tensors.some(({ name }) => name === 'q'));
  if (own.length > 0) return own;
  const likely = read.filter((file) => file.likely.q !== undefined);
  return likely.length > 0 ? likely : read.filter(({ tensors }) => tensors.length >= 3);
}

/** Offers what files hold, and judges it at once where it can be told what is to be judged. */
function show(listed: readonly ListedFile[], judgedNames: readonly string[]): void {
  page.state = { ...page.state, listed };
  const refused = listed.flatMap((file) => ('refusal' in file ? [file.refusal] : []));
  const problems = problemsOf(listed);
  const count = listed.flatMap((file) => ('tensors' in file ? file.tensors : [])).length;
  chosen.textContent = `${listed.map(({ name }) => name).join(', ')}: ${count} tensors.`;
  options.hidden = problems.length === 0;
  if (refused.length > 0) say('refused', ...refused);
  else if (problems.length === 0)
    say('refused', 'No file has three tensors: those of a problem are q, k and v.');
  if (problems.length === 0) return;
  path.replaceChildren(...problems.map(({ name }) => option(name)));
  byId('as', HTMLSelectElement).replaceChildren(
    option('', 'any correct fused kernel'),
    ...judgedNames.map((name) => option(name)),
  );
  const isUsual = offerInputs(listed, path.value);
  offerOutputs(listed, path.value);
  if (refused.length > 0) return;
  if (isUsual && output.value !== '') return audit();
  options.open = true;
  const read = describeInputs();
  if (isUsual) return say('note', 'Which tensor is the output? Choose it below.');
  if (read === null)
    return say('note', 'Not all of q, k and v are there. Which are they? Choose them below.');
  say('note', `The problem has other names than q, k and v. Read ${read}? Change it below, or`);
  const start = create('button', { type: 'button', class: 'main' }, 'Audit');
  start.addEventListener('click', audit);
  outcome.querySelector('.verdict')?.append(start);
}

function take(files: readonly File[]): void {
  if (files.length === 0) return;
  const named = files.map((file) => [file.name, file] as const);
  page.state = { ...page.state, files: named, listed: [] };
  main.classList.add('given');
  options.open = false;
  options.hidden = true;
  report.hidden = true;
  outcome.replaceChildren();
  alternatives.replaceChildren();
  chosen.textContent = 'Reading the headers …';
  ask({ kind: 'list', files: named }, (answer) => {
    if (answer.kind === 'listed') show(answer.files, answer.judgedNames);
  });
}

/** Judges the example that the address names, if it names one. */
async function takeExample(): Promise<void> {
  const example = exampleOf(location.hash);
  for (const link of byId('examples', HTMLElement).querySelectorAll('a'))
    if (link.hash === `#example=${example?.id}`) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  if (example === null) return;
  const name = `${example.id}.safetensors`;
  stop();
  main.classList.add('given');
  chosen.textContent = 'Loading the example …';
  try {
    const response = await fetch(`./examples/${name}`);
    if (!response.ok) throw new Error(`status ${response.status}`);
    take([new File([await response.blob()], name)]);
    const link = { href: `./examples/${name}`, download: name };
    about.replaceChildren(`${example.text} `, create('a', link, 'Download it'));
  } catch (error) {
    say('refused', `The example ${name} could not be loaded: ${String(error)}.`);
  }
}

const stages: Readonly<Record<string, string>> = {
  oracle: 'Exact results',
  structure: 'Structure tests',
  bounds: 'Bounds',
};

/** Offers the other outputs of the files, a button each. */
function offerAlternatives(): void {
  const rest = likelyOutputs(page.state.listed, path.value).filter((one) => one !== output.value);
  const buttons = rest.slice(0, 8).map((one) => {
    const button = create('button', { type: 'button' }, one);
    button.addEventListener('click', () => {
      output.value = one;
      offerBeside(page.state.listed, path.value);
      audit();
    });
    return button;
  });
  alternatives.replaceChildren(
    ...(buttons.length === 0 ? [] : ['Also in these files: ', ...buttons]),
  );
}

function showVerdict(
  answer: AuditAnswer & { readonly kind: 'judged' },
  words: Partial<AuditWords>,
) {
  const workers = `${threads.value} ${threads.value === '1' ? 'worker' : 'workers'}`;
  const judged = judgedWords.flatMap((word) => words[word] || []).join(', ');
  const read = describeInputs();
  say(
    answer.pass ? 'pass' : 'fail',
    answer.sentence,
    `Judged: ${judged}.${read === null ? '' : ` Read: ${read}.`} ${answer.seconds.toFixed(1)} s on ${workers}.`,
  );
  byId('command', HTMLElement).textContent = answer.command;
  for (const address of page.state.addresses) URL.revokeObjectURL(address);
  page.state = { ...page.state, addresses: showReport(answer.page, answer.json) };
  report.hidden = false;
}

function audit(): void {
  const words: Partial<AuditWords> = Object.fromEntries(
    [...new FormData(form)].flatMap(([name, text]) =>
      typeof text === 'string' ? [[name, text.trim()]] : [],
    ),
  );
  const stage = byId('stage', HTMLElement);
  const progress = byId('progress', HTMLProgressElement);
  report.hidden = true;
  const { files } = page.state;
  threads.value = String(Math.max(1, Math.floor(Number(threads.value)) || 1));
  const question = { files, path: path.value, words, threads: Number(threads.value) };
  ask({ kind: 'audit', ...question }, (answer) => {
    if (answer.kind === 'progress') {
      // The splits, the cause and the report have no share that could be told.
      const isDone = answer.done >= 1;
      const isLast = isDone && answer.stage === 'bounds';
      stage.textContent = isLast ? 'Verdict and report' : (stages[answer.stage] ?? answer.stage);
      if (isDone) progress.removeAttribute('value');
      else progress.value = answer.done;
    } else if (answer.kind === 'refused') say('refused', answer.line);
    else if (answer.kind === 'judged') showVerdict(answer, words);
  });
  offerAlternatives();
  outcome.replaceChildren();
  stage.textContent = 'Reading';
  progress.removeAttribute('value');
  running.hidden = false;
}

/** Takes files that are dropped anywhere on the page. */
function takeDrops(): void {
  const drop = byId('drop', HTMLElement);
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    drop.classList.add('over');
  });
  document.addEventListener('dragleave', () => drop.classList.remove('over'));
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    drop.classList.remove('over');
    takeOwn([...(event.dataTransfer?.files ?? [])]);
  });
}

/** Takes files of the person, and no longer an example. */
function takeOwn(files: readonly File[]): void {
  if (files.length === 0) return;
  history.replaceState(null, '', location.pathname);
  void takeExample();
  about.textContent = '';
  take(files);
}

byId('examples', HTMLElement).append(
  ...examples.map(({ id, title }) =>
    create('li', {}, create('a', { href: `#example=${id}` }, title)),
  ),
);
takeDrops();
byId('files', HTMLInputElement).addEventListener('change', ({ target }) =>
  takeOwn([...((target as HTMLInputElement).files ?? [])]),
);
path.addEventListener('change', () => {
  offerInputs(page.state.listed, path.value);
  offerOutputs(page.state.listed, path.value);
});
output.addEventListener('change', () => offerBeside(page.state.listed, path.value));
form.addEventListener('submit', (event) => {
  event.preventDefault();
  audit();
});
byId('cancel', HTMLButtonElement).addEventListener('click', () => {
  stop();
  say('note', 'Cancelled: nothing was judged.');
});
window.addEventListener('hashchange', () => void takeExample());
threads.value = String(Math.max(1, Math.min(8, navigator.hardwareConcurrency || 1)));
void takeExample();
keepOffline();
