import type { ExperimentOutputs, TechniqueTable } from '../../../src/browser/index.js';
import { byId, create, keepOffline } from '../element.js';
import { histogramSvg } from './histogram.js';
import { addressOf, knobs, requestOf, valuesOf, type Knob, type KnobValues } from './knobs.js';
import type { ExperimentAnswer, ExperimentQuestion } from './protocol.js';

const state = byId('state', HTMLElement);
const refused = byId('refused', HTMLElement);

/** How the knobs stand, and the number of the last request. */
const desk: { last: number; values: KnobValues } = { last: 0, values: valuesOf(location.hash) };

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

/** Asks for what the knobs say now; the worker leaves out what it has not begun. */
function experiment(): void {
  worker.postMessage({
    id: ++desk.last,
    request: requestOf(desk.values),
  } satisfies ExperimentQuestion);
}

worker.onmessage = ({ data }: MessageEvent<ExperimentAnswer>) => {
  if (data.kind === 'outputs') showOutputs(data.outputs, data.seconds);
  else if (data.kind === 'table') showTable(data.table, data.seconds);
  else {
    refused.replaceChildren(create('p', { class: 'verdict refused' }, data.line));
    state.textContent = 'Nothing was computed.';
  }
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
    experiment();
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
  experiment();
});
showKnobs();
experiment();
keepOffline();
