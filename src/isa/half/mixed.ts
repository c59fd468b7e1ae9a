import {
  addFloat32,
  bitsOfFloat32,
  float32Of,
  fusedMultiplyAddFloat32,
} from '../../arith/index.js';
import { type Row, row } from '../row.js';
import { type FloatType, floatTypes } from '../values/float-type.js';
import { roundingModifiers, roundings, saturated } from '../values/rounding.js';

/** The chosen modifiers. */
interface Modifiers {
  readonly rnd: string;
  readonly sat: string;
  readonly atype: string;
}

type Compute = (
  numbers: readonly number[],
  options: { readonly rounding: (typeof roundings)[string] },
) => number;

/** A function of numbers of half precision, which are fp32 numbers exactly, and of one of fp32, the last. */
function mixed({ rnd, sat, atype }: Modifiers, compute: Compute) {
  const { numberOf } = floatTypes[atype as FloatType['name']];
  const options = { rounding: roundings[rnd] ?? 'nearest-even' };
  return (...patterns: number[]): number => {
    const last = patterns.length - 1;
    const value = compute(
      patterns.map((bits, i) => (i < last ? numberOf(bits) : float32Of(bits))),
      options,
    );
    return bitsOfFloat32(sat === '' ? value : saturated(value));
  };
}

const common = {
  section: 'Mixed Precision Floating Point Instructions',
  alternatives: { rnd: roundingModifiers, atype: ['.f16', '.bf16'] },
  meaning: 'is',
  unit: 'fma',
  evidence: 'isa',
} as const;

/** fp32 with operands of half precision, which sm_100 has. */
export const mixedRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'add{.rnd}{.sat}.f32.atype d, a, c',
    operands: { c: 'f32' },
    evaluate: (chosen) => mixed(chosen, ([a, c], options) => addFloat32(a, c, options)),
  }),
  row({
    ...common,
    syntax: 'sub{.rnd}{.sat}.f32.atype d, a, c',
    operands: { c: 'f32' },
    evaluate: (chosen) => mixed(chosen, ([a, c], options) => addFloat32(a, -c, options)),
  }),
  row({
    ...common,
    syntax: 'fma.rnd{.sat}.f32.atype d, a, b, c',
    operands: { c: 'f32' },
    evaluate: (chosen) =>
      mixed(chosen, ([a, b, c], options) => fusedMultiplyAddFloat32(a, b, c, options)),
  }),
];
