import { formats, round, type FormatName } from '../../../src/formats/index.js';
import {
  recurrentFamilies,
  type RecurrentFamily,
  type RecurrentLaw,
} from '../../../src/problem/index.js';
import type { RandomValues } from '../../problems/index.js';
import { axesOf, inputNames, type AxisSizes, type InputName } from './axes.js';
import type { PlainInput } from './plain-recurrence.js';

/** Numbers of some inputs before they are rounded to their formats. */
export type DrawnValues = Partial<Record<InputName, Float64Array>>;

/** Which inputs a problem has beside q, k, v and what its family needs. */
export interface OptionalInputs {
  readonly hasInitialState: boolean;
  readonly hasDout: boolean;
  readonly hasDfinalState: boolean;
  /** Of mamba2. */
  readonly hasSkip: boolean;
  readonly hasGate: boolean;
  readonly hasBias: boolean;
}

/** The inputs that a problem has. */
export function namesOf(
  family: RecurrentFamily,
  { hasInitialState, hasDout, hasDfinalState, hasSkip, hasGate, hasBias }: OptionalInputs,
): readonly InputName[] {
  const { decay, write }: RecurrentLaw = recurrentFamilies[family];
  const isMamba2 = family === 'mamba2';
  const has: Readonly<Record<InputName, boolean>> = {
    q: true,
    k: true,
    v: true,
    g: !isMamba2 && (decay === 'by-head' || decay === 'by-key-dimension'),
    beta: write === 'delta',
    dt: isMamba2,
    A: isMamba2,
    D: isMamba2 && hasSkip,
    z: isMamba2 && hasGate,
    dt_bias: isMamba2 && hasBias,
    initial_state: hasInitialState,
    dout: hasDout,
    dfinal_state: hasDout && hasDfinalState,
  };
  return inputNames.filter((name) => has[name]);
}

/** Rows divided by their length; rows of zeros stay. */
export function unitRows(values: Float64Array, dim: number): Float64Array {
  const rows = values.slice();
  for (let at = 0; at < rows.length; at += dim) {
    const row = rows.subarray(at, at + dim);
    const length = Math.hypot(...row);
    if (length > 0) for (let i = 0; i < dim; i++) row[i] /= length;
  }
  return rows;
}

/** How fast states decay: the size of a typical gate, by problem. */
const rates: readonly number[] = [0.01, 0.1, 1];

/** How Δ is drawn of mamba2: with a softplus about a bias of −3, as its layers have it, else from 0 to 0.2. */
function stepNumbers(
  names: readonly InputName[],
  hasSoftplus: boolean,
  random: RandomValues,
): Readonly<Partial<Record<InputName, () => number>>> {
  const centre = names.includes('dt_bias') ? 0 : -3;
  return {
    dt: hasSoftplus ? () => centre + random.normal() : () => 0.2 * random.uniform(),
    dt_bias: () => (hasSoftplus ? -3 + random.normal() : 0.01 * random.uniform()),
    A: () => -1 - 15 * random.uniform(),
  };
}

/** What ordinary values are drawn for. */
export interface ValuesRequest {
  readonly family: RecurrentFamily;
  /** The inputs. */
  readonly names: readonly InputName[];
  readonly sizes: AxisSizes;
  /** Whether Δ of mamba2 is a softplus. */
  readonly hasSoftplus: boolean;
}

/** Ordinary values: keys of length 1, which no delta write expands, decays and write strengths from 0 to 1, else normal numbers. */
export function typicalValues(
  { family, names, sizes, hasSoftplus }: ValuesRequest,
  random: RandomValues,
): DrawnValues {
  const rate = rates[random.integer(0, rates.length - 1)];
  const numbers: Readonly<Partial<Record<InputName, () => number>>> = {
    g: () => -rate * Math.abs(random.normal()),
    beta: random.uniform,
    ...stepNumbers(names, hasSoftplus, random),
  };
  const drawn = names.map((name) => {
    const length = axesOf(name, family).reduce((product, axis) => product * sizes[axis], 1);
    const values = Float64Array.from({ length }, numbers[name] ?? random.normal);
    return [name, name === 'k' ? unitRows(values, sizes.keyDim) : values] as const;
  });
  return Object.fromEntries(drawn);
}

/** Values as their formats hold them; finite ones stay finite. */
export function storedInput(format: FormatName, values: Float64Array): PlainInput {
  const { maxFinite } = formats[format];
  const stored = (x: number) =>
    Number.isFinite(x) ? Math.max(-maxFinite, Math.min(maxFinite, round(formats[format], x))) : x;
  return { format, values: values.map(stored) };
}
