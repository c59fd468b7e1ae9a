import type { AuditWords } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import type { AuditAnswer, AuditQuestion, ListedFile, NamedFile } from './protocol.js';

const chosen = byId('chosen', HTMLElement);
const form = byId('form', HTMLFormElement);
const outcome = byId('outcome', HTMLElement);
const running = byId('running', HTMLElement);
const report = byId('report', HTMLElement);
const path = byId('path', HTMLSelectElement);
const threads = byId('threads', HTMLInputElement);

/** What is on the page, replaced as a whole. */
interface State {
  readonly files: readonly NamedFile[];
  readonly listed: readonly ListedFile[];
  /** Null while nothing is judged or listed. */
  readonly worker: Worker | null;
  /** Addresses of what can be saved, to be released. */
  readonly addresses: readonly string[];
}
const page: { state: State } = {
  state: { files: [], listed: [], worker: null, addresses: [] },
};

/** Stops what runs: a worker that is ended takes those that it started with it. */
function stop(): void {
  page.state.worker?.terminate();
  page.state = { ...page.state, worker: null };
  running.hidden = true;
  byId('cancel', HTMLButtonElement).hidden = true;
  byId('run', HTMLButtonElement).disabled = false;
}

function say(kind: 'pass' | 'fail' | 'refused' | 'note', ...texts: readonly string[]): void {
  const lines = texts.map((text) => create('p', {}, text));
  outcome.replaceChildren(create('div', { class: `verdict ${kind}` }, ...lines));
}

/** Asks a new worker, and hands each of its answers on until the last. */
function ask(question: AuditQuestion, take: (answer: AuditAnswer) => void): void {
  stop();
  const worker = new Worker(new URL('./audit-worker.ts', import.meta.url), { type: 'module' });
  page.state = { ...page.state, worker };
  worker.onmessage = ({ data }: MessageEvent<AuditAnswer>) => {
    if (data.kind !== 'progress') stop();
    take(data);
  };
  worker.onerror = ({ message }) => {
    stop();
    say('refused', `The audit broke off: ${message || 'its worker did not start'}.`);
  };
  worker.postMessage(question);
}

function option(value: string, text = value): HTMLElement {
  return create('option', { value }, text);
}

/** The tensors that may be an output, as the command line names them; those of the problem's file first. */
function outputChoices(of: string): (readonly [value: string, name: string])[] {
  const inputs = ['q', 'k', 'v'];
  const tensors = page.state.listed.flatMap((file) =>
    'tensors' in file ? file.tensors.map((tensor) => ({ file: file.name, tensor })) : [],
  );
  return tensors
    .filter(({ file, tensor: { name } }) => file !== of || !inputs.includes(name))
    .sort((a, b) => Number(a.file !== of) - Number(b.file !== of))
    .map(({ file, tensor: { name } }) => [`${file === of ? '' : file}:${name}`, name] as const);
}

/** Fields for the other results that files may hold: the word, the label, and the tensors that it is shown for. */
const others: readonly (readonly [word: keyof AuditWords, label: string, named: RegExp])[] = [
  ['dout', 'dO', /^(dout|do)$/],
  ['dq', 'dQ', /^dq$/],
  ['dk', 'dK', /^dk$/],
  ['dv', 'dV', /^dv$/],
  ['dbias', 'dBias', /^dbias$/],
  ['dsink', 'dSink', /^dsink$/],
  ['outPartial', 'O of each split', /^out_partial$/],
  ['lsePartial', 'LSE of each split', /^lse_partial$/],
];

/** What comes before the name of the chosen output: its file, and its part of the file. */
function outputPrefix(): string {
  return byId('output', HTMLSelectElement).value.replace(/(out|o)$/, '');
}

/** Offers the other results where there are any; those beside the output are chosen, and dO with gradients. */
function offerOthers(): void {
  const choices = outputChoices(path.value);
  const prefix = outputPrefix();
  const offered = others.flatMap(([word, label, named]) => {
    const alike = choices.flatMap(([value, name]) => {
      const last = name.slice(name.lastIndexOf('.') + 1);
      return named.test(last) ? [{ value, before: value.slice(0, -last.length) }] : [];
    });
    if (alike.length === 0) return [];
    const select = document.createElement('select');
    select.name = word;
    select.append(option('', 'none'), ...choices.map(([value]) => option(value)));
    const own = alike.find(({ before }) => before === prefix);
    select.value = (own ?? (word === 'dout' ? alike[0] : undefined))?.value ?? '';
    return [{ word, select, field: create('label', {}, label, select) }];
  });
  const hasGradients = offered.some(
    ({ word, select }) => word !== 'dout' && word.startsWith('d') && select.value !== '',
  );
  for (const { word, select } of offered) if (word === 'dout' && !hasGradients) select.value = '';
  byId('others', HTMLElement).replaceChildren(...offered.map(({ field }) => field));
}

/** Offers results to judge; what is named as the command line expects it is chosen. */
function offerOutputs(): void {
  const choices = outputChoices(path.value);
  const offer = (id: string, isOne: (name: string) => boolean) => {
    const select = byId(id, HTMLSelectElement);
    const empty = option('', id === 'lse' ? 'none' : 'choose one');
    select.replaceChildren(empty, ...choices.map(([value]) => option(value)));
    const own = choices.find(([, name]) => isOne(name));
    select.value = own?.[0] ?? '';
  };
  offer('output', (name) => /(^|\.)(out|o)$/.test(name));
  const prefix = outputPrefix();
  offer(
    'lse',
    (name) => prefix !== '' && `:${name}`.endsWith(`${prefix.slice(prefix.indexOf(':'))}lse`),
  );
  offerOthers();
}

function show(listed: readonly ListedFile[], judgedNames: readonly string[]): void {
  page.state = { ...page.state, listed };
  const refused = listed.flatMap((file) => ('refusal' in file ? [file.refusal] : []));
  const problems = listed.filter(
    (file) => 'tensors' in file && file.tensors.some(({ name }) => name === 'q'),
  );
  const count = listed.flatMap((file) => ('tensors' in file ? file.tensors : [])).length;
  chosen.textContent = `${listed.map(({ name }) => name).join(', ')}: ${count} tensors.`;
  if (refused.length > 0) say('refused', ...refused);
  else outcome.replaceChildren();
  form.hidden = problems.length === 0;
  if (problems.length === 0) {
    if (refused.length === 0)
      say('refused', `No file has a tensor "q"; the problem's tensors are named q, k and v.`);
    return;
  }
  path.replaceChildren(...problems.map(({ name }) => option(name)));
  const as = byId('as', HTMLSelectElement);
  as.replaceChildren(
    option('', 'any correct fused kernel'),
    ...judgedNames.map((name) => option(name)),
  );
  offerOutputs();
}

function take(list: FileList | null): void {
  if (list === null || list.length === 0) return;
  const files = [...list].map((file) => [file.name, file] as const);
  page.state = { ...page.state, files, listed: [] };
  report.hidden = true;
  chosen.textContent = 'Reading the headers …';
  ask({ kind: 'list', files }, (answer) => {
    if (answer.kind === 'listed') show(answer.files, answer.judgedNames);
  });
}

const stages: Readonly<Record<string, string>> = {
  oracle: 'Exact results',
  structure: 'Structure tests',
  bounds: 'Bounds',
};

function showReport(html: string, json: string): void {
  for (const address of page.state.addresses) URL.revokeObjectURL(address);
  const addresses = [
    URL.createObjectURL(new Blob([html], { type: 'text/html' })),
    URL.createObjectURL(new Blob([json], { type: 'application/json' })),
  ];
  page.state = { ...page.state, addresses };
  byId('saveHtml', HTMLAnchorElement).href = addresses[0];
  byId('saveJson', HTMLAnchorElement).href = addresses[1];
  byId('frame', HTMLIFrameElement).src = addresses[0];
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
  const workers = Math.max(1, Math.floor(Number(threads.value)) || 1);
  ask({ kind: 'audit', files, path: path.value, words, threads: workers }, (answer) => {
    if (answer.kind === 'progress') {
      stage.textContent = stages[answer.stage] ?? answer.stage;
      progress.value = answer.done;
    } else if (answer.kind === 'refused') say('refused', answer.line);
    else if (answer.kind === 'judged') {
      const time = `${answer.seconds.toFixed(1)} s on ${workers} ${workers === 1 ? 'worker' : 'workers'}.`;
      say(answer.pass ? 'pass' : 'fail', answer.sentence, time);
      showReport(answer.page, answer.json);
    }
  });
  outcome.replaceChildren();
  stage.textContent = 'Reading';
  progress.value = 0;
  running.hidden = false;
  byId('run', HTMLButtonElement).disabled = true;
  byId('cancel', HTMLButtonElement).hidden = false;
}

const drop = byId('drop', HTMLElement);
drop.addEventListener('dragover', (event) => {
  event.preventDefault();
  drop.classList.add('over');
});
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', (event) => {
  event.preventDefault();
  drop.classList.remove('over');
  take(event.dataTransfer?.files ?? null);
});
byId('files', HTMLInputElement).addEventListener('change', ({ target }) =>
  take((target as HTMLInputElement).files),
);
path.addEventListener('change', offerOutputs);
byId('output', HTMLSelectElement).addEventListener('change', offerOthers);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  audit();
});
byId('cancel', HTMLButtonElement).addEventListener('click', () => {
  stop();
  say('note', 'Cancelled: nothing was judged.');
});
threads.value = String(Math.max(1, Math.min(8, navigator.hardwareConcurrency || 1)));
keepOffline();
