import type { ExperimentOutputs, TechniqueTable } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import { histogramSvg } from './histogram.js';
import { addressOf, knobs, requestOf, valuesOf, type Knob, type KnobValues } from './knobs.js';
import type { ExperimentAnswer, ExperimentQuestion } from './protocol.js';

/** How long a knob must stand still, in milliseconds. */
const stillness = 60;

const state = byId('state', HTMLElement);
const refused = byId('refused', HTMLElement);

/** How the knobs stand, and how they stood for the last request; `busy` while the worker has it. */
const desk: {
  last: number;
  busy: boolean;
  timer: number;
  values: KnobValues;
  asked: KnobValues | null;
} = { last: 0, busy: false, timer: 0, values: valuesOf(location.hash), asked: null };

const worker = new Worker(new URL('./laboratory-worker.ts', import.meta.url), { type: 'module' });

/** Three digits. */
function digits(value: number): string {
  if (value === 0) return '0';
  const text = value.toPrecision(3);
  return Math.abs(value) < 1e-3 ? Number(text).toExponential() : text;
}

function showOutputs(outputs: ExperimentOutputs, seconds: number): void {
  refused.replaceChildren();
  byId('histogram', HTMLElement).replaceChildren(histogramSvg(outputs.histogram));
  state.textContent = `Largest error ${digits(outputs.largestError)}, rms ${digits(outputs.rmsError)}, of outputs up to ${digits(outputs.largestOutput)}; ${Math.round(1000 * seconds)} ms.`;
}

function showTable({ techniques, total }: TechniqueTable, seconds: number): void {
  const rows = [...techniques, total].map(({ technique, bound, measured }) =>
    create(
      'tr',
      {},
      create('th', { scope: 'row' }, technique),
      ...[measured?.max, measured?.rms, bound.max].map((value) =>
        create('td', { class: 'number' }, value === undefined ? '–' : digits(value)),
      ),
      create(
        'td',
        { class: 'number' },
        measured === null ? '–' : `${digits(100 * measured.used)} %`,
      ),
    ),
  );
  byId('techniques', HTMLElement).replaceChildren(...rows);
  state.textContent += ` Techniques and bounds: ${Math.round(1000 * seconds)} ms.`;
}

/** Asks for what the knobs say now, unless the worker has a request: then when it is done. */
function experiment(): void {
  if (desk.busy) return;
  desk.busy = true;
  desk.asked = desk.values;
  worker.postMessage({
    id: ++desk.last,
    request: requestOf(desk.values),
  } satisfies ExperimentQuestion);
}

/** Waits until the knobs stand still. */
function later(): void {
  clearTimeout(desk.timer);
  desk.timer = window.setTimeout(experiment, stillness);
}

worker.onmessage = ({ data }: MessageEvent<ExperimentAnswer>) => {
  if (data.kind === 'outputs') return showOutputs(data.outputs, data.seconds);
  desk.busy = false;
  if (data.kind === 'table') showTable(data.table, data.seconds);
  else {
    refused.replaceChildren(create('p', { class: 'verdict refused' }, data.line));
    state.textContent = 'Nothing was computed.';
  }
  if (desk.asked !== desk.values) experiment();
};

function fieldOf(knob: Knob): HTMLElement {
  const { name, label, hint } = knob;
  const value = desk.values[name];
  const shown = create('output', {}, value);
  const field =
    'choices' in knob
      ? create('select', { name }, ...knob.choices.map((choice) => create('option', {}, choice)))
      : create('input', {
          type: 'range',
          name,
          min: String(knob.low),
          max: String(knob.high),
          step: String(knob.step),
        });
  (field as HTMLInputElement | HTMLSelectElement).value = value;
  field.addEventListener('input', () => {
    const text = (field as HTMLInputElement).value;
    shown.textContent = text;
    desk.values = { ...desk.values, [name]: text };
    history.replaceState(null, '', addressOf(desk.values));
    later();
  });
  const words = 'choices' in knob ? [label] : [`${label}: `, shown];
  return create('label', {}, create('span', {}, ...words), field, create('small', {}, hint));
}

function showKnobs(): void {
  byId('knobs', HTMLFormElement).replaceChildren(...knobs.map(fieldOf));
}

window.addEventListener('hashchange', () => {
  desk.values = valuesOf(location.hash);
  showKnobs();
  later();
});
showKnobs();
experiment();
keepOffline();
