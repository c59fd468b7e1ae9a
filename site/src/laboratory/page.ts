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
  const picture = histogramSvg(outputs.histogram);
  const words = create('p', { class: 'muted' }, picture.getAttribute('aria-label') ?? '');
  byId('histogram', HTMLElement).replaceChildren(picture, words);
  state.textContent = `Largest error ${digits(outputs.largestError)}, rms ${digits(outputs.rmsError)}, of outputs up to ${digits(outputs.largestOutput)}; ${Math.round(1000 * seconds)} ms.`;
}

/**
 * The largest error of a technique within its bound, as two bars on one logarithmic scale.
 * @param scale ends of the scale
 */
function barsOf(found: number | undefined, bound: number, [low, high]: readonly number[]) {
  const bar = (value: number, name: string): HTMLElement => {
    const share = value > 0 ? Math.log(value / low) / Math.log(high / low) : 0;
    const width = `width: ${(100 * Math.min(1, Math.max(0.005, share))).toFixed(1)}%`;
    return create('span', { class: name, style: width });
  };
  const bars = [bar(bound, 'allowed'), ...(found === undefined ? [] : [bar(found, 'found')])];
  return create('td', { class: 'bars' }, ...bars);
}

/** The decades that hold all numbers. */
function decades(values: readonly number[]): readonly number[] {
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return [0.1, 1];
  const low = 10 ** Math.floor(Math.log10(Math.min(...positive)));
  return [low, Math.max(10 * low, 10 ** Math.ceil(Math.log10(Math.max(...positive))))];
}

function showTable({ techniques, total }: TechniqueTable, seconds: number): void {
  const all = [...techniques, total];
  const scale = decades(all.flatMap(({ bound, measured }) => [bound.max, measured?.max ?? 0]));
  byId('scale', HTMLElement).textContent =
    `output units, ${scale.map((end) => end.toExponential()).join(' to ')}, logarithmic`;
  const rows = all.map(({ technique, bound, measured }) =>
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
      barsOf(measured?.max, bound.max, scale),
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
