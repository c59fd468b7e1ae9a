import type { RealDomain } from '../domains/index.js';
import { valueInStore, type Recorder } from '../record/index.js';
import {
  decidedValue,
  lostValue,
  noValue,
  type Trace,
  valueFormat,
  type ValueFormat,
} from '../trace/index.js';

/** What is known of an element that a kernel should have written. */
export type Standing =
  /** It has a real value, an expression, and inputs that reach it. */
  | 'meaning'
  /** It is lost: nothing is claimed of it. */
  | 'lost'
  /** An integer, or bits of one, that values have decided. */
  | 'decided'
  /** No input reaches it: bits of the program. */
  | 'constant'
  /** The kernel has not written it. */
  | 'unwritten';

/** The values of an output after a run, by element. */
export interface OutputValues {
  readonly tensor: string;
  readonly format: ValueFormat;
  /** The number of each element's value; of constants no value. */
  readonly values: Uint32Array;
}

/**
 * The values of an output.
 *
 * @param format that of the tensor's elements; integers have theirs, as `s32`
 */
export function outputValues(
  recorder: Recorder,
  tensor: string,
  format: string,
): OutputValues | null {
  const store = recorder.stores.get(tensor);
  const known = valueFormat(format);
  if (store === undefined || known === null) return null;
  const { bytes } = known;
  const values = Uint32Array.from({ length: Math.floor(store.bytes.length / bytes) }, (_, i) =>
    valueInStore(recorder.trace, store, i * bytes, bytes),
  );
  return { tensor, format: known, values };
}

/** What is known of an element of an output. */
export function standingOf(
  { trace, inputs }: Recorder,
  output: OutputValues,
  element: number,
): Standing {
  const value = output.values[element];
  if (value === lostValue) return 'lost';
  if (value === decidedValue) return 'decided';
  if (value === noValue) return 'constant';
  if (trace.formatOf(value) !== output.format) return 'lost';
  const isInput = trace.operationOf(value).origin === 'input';
  const isOwn = isInput && inputs[trace.a[value]].tensor === output.tensor;
  return isOwn && trace.b[value] === element ? 'unwritten' : 'meaning';
}

/** How many elements of an output have which standing. */
export type Coverage = Readonly<Record<Standing, number>>;

/** Counts the elements of an output by their standing. */
export function coverageOf(recorder: Recorder, output: OutputValues): Coverage {
  const counts = { meaning: 0, lost: 0, decided: 0, constant: 0, unwritten: 0 };
  for (let i = 0; i < output.values.length; i++) counts[standingOf(recorder, output, i)]++;
  return counts;
}

/** How many elements of an output are infinite or NaN in bits, though their real values are finite numbers that the format has. */
export function countOverflowed(
  trace: Trace,
  real: RealDomain,
  { format, values }: OutputValues,
): number {
  const isLost = (value: number) =>
    value > decidedValue &&
    !format.isInteger &&
    !Number.isFinite(trace.numberOf(value)) &&
    Math.abs(real.of(value).high) <= format.largest;
  return values.reduce((count, value) => count + (isLost(value) ? 1 : 0), 0);
}
