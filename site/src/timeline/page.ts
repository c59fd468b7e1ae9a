import type { Timeline, TimelineMutant } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import { deadlockOf, endlessWaits } from './deadlock.js';
import { eventKinds } from './kinds.js';
import { offerMistakes } from './mistakes.js';
import { rowsOf } from './now.js';
import { describePicture, timelinePicture, type View } from './picture.js';
import type { TimelineAnswer, TimelineQuestion } from './protocol.js';

const form = byId('form', HTMLFormElement);
const state = byId('state', HTMLElement);
const clock = byId('clock', HTMLInputElement);
const view = byId('view', HTMLInputElement);
const picture = byId('picture', HTMLElement);
const mistake = byId('mutant', HTMLSelectElement);
const worker = new Worker(new URL('./timeline-worker.ts', import.meta.url), { type: 'module' });
const ask = (question: TimelineQuestion) => worker.postMessage(question);

/** What is shown: a run, and the clocks at which something begins or ends. */
const shown: {
  timeline: Timeline | null;
  moments: readonly number[];
  mistakes: readonly TimelineMutant[];
} = {
  timeline: null,
  moments: [],
  mistakes: [],
};

/** The clocks in view: all where the slider is at its end, half of them a step before, and so on. */
function viewOf({ clocks }: Timeline, time: number): View {
  const length = Math.max(50, clocks / 2 ** (Number(view.max) - Number(view.value)));
  const from = Math.max(0, Math.min(time - length / 2, clocks - length));
  return { from: Math.round(from), to: Math.round(from + length) };
}

function show(): void {
  const { timeline } = shown;
  if (timeline === null) return;
  const time = Number(clock.value);
  const inView = viewOf(timeline, time);
  const length = inView.to - inView.from;
  picture.replaceChildren(...timelinePicture(timeline, inView, time));
  picture.ariaLabel = describePicture(timeline, inView, time);
  byId('now-heading', HTMLElement).textContent = `At clock ${time}`;
  byId('clock-value', HTMLElement).textContent = `${time} of ${timeline.clocks}`;
  byId('view-value', HTMLElement).textContent =
    view.value === view.max ? `all ${length}` : String(length);
  byId('now', HTMLElement).replaceChildren(...rowsOf(timeline, time));
}

/** Goes to the clock of a place in a lane. */
function goTo({ target, clientX }: MouseEvent): void {
  const lane = target instanceof Element ? target.closest('svg') : null;
  if (lane === null || shown.timeline === null) return;
  const { from, to } = viewOf(shown.timeline, Number(clock.value));
  const { left, width } = lane.getBoundingClientRect();
  clock.value = String(Math.round(from + ((clientX - left) / width) * (to - from)));
  show();
}

/** A finding; a deadlock as a list of who waits for what. */
function findingOf(finding: string): HTMLElement {
  const waits = deadlockOf(finding);
  if (waits === null) return create('p', {}, finding);
  const items = waits.map(({ who, site, awaited }) =>
    create(
      'li',
      {},
      create('strong', {}, who),
      ` for ${awaited}`,
      create('small', {}, ` (${site})`),
    ),
  );
  return create(
    'div',
    {},
    create('p', {}, 'A deadlock. These wait for ever:'),
    create('ul', {}, ...items),
  );
}

function showMistakes(): void {
  const { value } = byId('search', HTMLInputElement);
  const isPair = new FormData(form).get('ctas') === '2';
  const possible = shown.mistakes.filter(({ needsPair }) => isPair || !needsPair);
  const count = offerMistakes(mistake, possible, value);
  const others = shown.mistakes.length - possible.length;
  byId('count', HTMLElement).textContent =
    `${count} of ${possible.length} in the synchronisation${others > 0 ? `; ${others} more with 2 CTAs` : ''}`;
  nameMistake();
}

/** Says in full what goes wrong, and how the command line names it. */
function nameMistake(): void {
  const chosen = shown.mistakes.find(({ id }) => id === mistake.value);
  byId('mistake', HTMLElement).textContent =
    chosen === undefined
      ? 'The kernel as it is.'
      : `${chosen.description}. On the command line: --mutant "${chosen.id}"`;
}

function showLegend(): void {
  const items = eventKinds.map(({ name, color }) =>
    create('li', {}, create('span', { style: `background: ${color}` }), name),
  );
  byId('legend', HTMLElement).replaceChildren(...items);
}

function take(timeline: Timeline): void {
  const moments = new Set(timeline.events.flatMap(({ start, end }) => [start, end]));
  shown.timeline = { ...timeline, events: [...timeline.events, ...endlessWaits(timeline)] };
  shown.moments = [...moments].sort((a, b) => a - b);
  clock.max = String(timeline.clocks);
  clock.value = String(Math.min(Number(clock.value), timeline.clocks));
  const end = timeline.isComplete
    ? 'all warps came to their end'
    : 'a deadlock: warps wait for ever';
  state.textContent = `${timeline.clocks} clocks, ${timeline.events.length} events; ${end}.`;
  const found = timeline.findings.map(findingOf);
  const none = create(
    'p',
    {},
    timeline.speaksForAllSchedules
      ? 'No race and no deadlock, under any schedule.'
      : 'No race and no deadlock in this run; others may have some.',
  );
  byId('findings', HTMLElement).replaceChildren(
    create(
      'div',
      { class: `verdict ${found.length === 0 && timeline.isComplete ? 'pass' : 'fail'}` },
      ...(found.length === 0 ? (timeline.isComplete ? [none] : ['A deadlock.']) : found),
    ),
  );
  show();
}

worker.onmessage = ({ data }: MessageEvent<TimelineAnswer>) => {
  if (data.kind === 'mutants') {
    shown.mistakes = data.mutants;
    showMistakes();
    run();
  } else if (data.kind === 'timeline') take(data.timeline);
  else {
    state.textContent = 'Nothing was run.';
    byId('findings', HTMLElement).replaceChildren(
      create('p', { class: 'verdict refused' }, data.line),
    );
  }
};

function run(): void {
  const words = new FormData(form);
  const text = (name: string) => String(words.get(name) ?? '');
  state.textContent = 'Running …';
  ask({
    kind: 'run',
    request: {
      queries: 256,
      keys: Number(text('keys')),
      dim: 64,
      ctas: text('ctas') === '2' ? 2 : 1,
      mutant: text('mutant') === '' ? null : text('mutant'),
    },
  });
}

/** Goes to the next moment at which something begins or ends, or to the one before. */
function step(on: boolean): void {
  const time = Number(clock.value);
  const next = on
    ? shown.moments.find((moment) => moment > time)
    : shown.moments.findLast((moment) => moment < time);
  if (next !== undefined) clock.value = String(next);
  show();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  run();
});
byId('search', HTMLInputElement).addEventListener('input', showMistakes);
byId('ctas', HTMLSelectElement).addEventListener('change', showMistakes);
mistake.addEventListener('change', nameMistake);
picture.addEventListener('click', goTo);
clock.addEventListener('input', show);
view.addEventListener('input', show);
byId('before', HTMLButtonElement).addEventListener('click', () => step(false));
byId('next', HTMLButtonElement).addEventListener('click', () => step(true));
showLegend();
ask({ kind: 'mutants' });
keepOffline();
