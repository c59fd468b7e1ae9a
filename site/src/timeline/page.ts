import type { Timeline, TimelineEvent } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import { deadlockOf } from './deadlock.js';
import { eventKinds } from './kinds.js';
import { offerMistakes } from './mistakes.js';
import { timelinePicture } from './picture.js';
import type { TimelineAnswer, TimelineQuestion } from './protocol.js';

const form = byId('form', HTMLFormElement);
const state = byId('state', HTMLElement);
const clock = byId('clock', HTMLInputElement);
const view = byId('view', HTMLInputElement);
const worker = new Worker(new URL('./timeline-worker.ts', import.meta.url), { type: 'module' });
const ask = (question: TimelineQuestion) => worker.postMessage(question);

/** What is shown: a run, and the clocks at which something begins or ends. */
const shown: {
  timeline: Timeline | null;
  moments: readonly number[];
  mistakes: readonly string[];
} = {
  timeline: null,
  moments: [],
  mistakes: [],
};

/** What a warp or a unit is at when a clock has come: the event that began last. */
function eventAt(events: readonly TimelineEvent[], time: number): TimelineEvent | undefined {
  return events.filter(({ start, end }) => start <= time && time < end).at(-1);
}

function show(): void {
  const { timeline } = shown;
  if (timeline === null) return;
  const time = Number(clock.value);
  const length = Math.max(50, timeline.clocks / 2 ** Number(view.value));
  const from = Math.max(0, Math.min(time - length / 2, timeline.clocks - length));
  const window = { from: Math.round(from), to: Math.round(from + length) };
  byId('picture', HTMLElement).replaceChildren(timelinePicture(timeline, window, time));
  byId('now-heading', HTMLElement).textContent = `At clock ${time}`;
  byId('clock-value', HTMLElement).textContent = `${time} of ${timeline.clocks}`;
  byId('view-value', HTMLElement).textContent = String(window.to - window.from);
  const rows = timeline.tracks.map(({ id, cta, name }) => {
    const event = eventAt(
      timeline.events.filter(({ track }) => track === id),
      time,
    );
    const who = timeline.tracks.some((other) => other.cta > 0) ? `CTA ${cta}, ${name}` : name;
    return create(
      'tr',
      {},
      create('th', { scope: 'row' }, who),
      create('td', event?.isWait === true ? { class: 'muted' } : {}, event?.name ?? 'nothing'),
      create('td', { class: 'number' }, event === undefined ? '' : String(event.start)),
      create('td', { class: 'number' }, event === undefined ? '' : String(event.end)),
    );
  });
  byId('now', HTMLElement).replaceChildren(...rows);
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
  const count = offerMistakes(byId('mutant', HTMLSelectElement), shown.mistakes, value);
  byId('count', HTMLElement).textContent =
    `${count} of ${shown.mistakes.length} in the synchronisation`;
}

function showLegend(): void {
  const items = eventKinds.map(({ name, color }) =>
    create('li', {}, create('span', { style: `background: ${color}` }), name),
  );
  byId('legend', HTMLElement).replaceChildren(...items);
}

function take(timeline: Timeline): void {
  const moments = new Set(timeline.events.flatMap(({ start, end }) => [start, end]));
  shown.timeline = timeline;
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
    shown.mistakes = data.ids;
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
clock.addEventListener('input', show);
view.addEventListener('input', show);
byId('before', HTMLButtonElement).addEventListener('click', () => step(false));
byId('next', HTMLButtonElement).addEventListener('click', () => step(true));
showLegend();
ask({ kind: 'mutants' });
keepOffline();
