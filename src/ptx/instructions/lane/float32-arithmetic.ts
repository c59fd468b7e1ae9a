import {
  addFloat32,
  bitsOfFloat32,
  type Float32Options,
  float32Of,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  productError,
  roundSumToFloat32,
  roundSumToFloat32FlushingToZero,
  subtractFloat32,
} from '../../../arith/index.js';
import type { RoundingMode } from '../../../formats/index.js';
import type { LaneInstruction, LaneUnit } from '../lane-instruction.js';
import { flushed, floatTypes } from './float-type.js';
import { type FamilyFacts, wordRow } from './row.js';

const { f32 } = floatTypes;

function facts(instruction: string, unit: LaneUnit = 'fma'): FamilyFacts {
  return { unit, evidence: 'isa', source: `PTX ISA, Floating Point Instructions: ${instruction}` };
}

/** PTX's rounding modifiers. */
export const roundings: Readonly<Record<string, RoundingMode>> = {
  rn: 'nearest-even',
  rz: 'toward-zero',
  rm: 'down',
  rp: 'up',
};

/** `.sat`: cut to [0, 1]; NaN and −0 give +0. */
export function saturated(value: number): number {
  return value > 0 ? Math.min(value, 1) : 0;
}

type Compute = (a: number, b: number, c: number, options: Float32Options) => number;

/** An operation: its opcodes, with those that may lack a rounding modifier first, and its operands. */
const operations: readonly (readonly [readonly string[], readonly string[], 2 | 3, Compute])[] = [
  [['add'], [''], 2, (a, b, _c, options) => addFloat32(a, b, options)],
  [['sub'], [''], 2, (a, b, _c, options) => subtractFloat32(a, b, options)],
  [['mul'], [''], 2, (a, b, _c, options) => multiplyFloat32(a, b, options)],
  [['fma', 'mad'], [], 3, fusedMultiplyAddFloat32],
];

/** All operations with `.sat`; without it `mad`, which is another name of `fma`. */
const sums = operations.flatMap(([opcodes, withoutMode, operands, compute]) =>
  opcodes.flatMap((opcode) =>
    [...withoutMode, ...Object.keys(roundings).map((mode) => `.${mode}`)].flatMap((mode) =>
      ['', '.ftz'].flatMap((ftz) =>
        (opcode === 'mad' ? ['', '.sat'] : ['.sat']).map((sat) => {
          const rounding = roundings[mode.slice(1)] ?? 'nearest-even';
          const options = { rounding, flushToZero: ftz !== '' };
          const evaluate = (a: number, b: number, c: number): number => {
            const value = compute(float32Of(a), float32Of(b), float32Of(c ?? 0), options);
            return bitsOfFloat32(sat === '' ? value : saturated(value));
          };
          const sources = Array.from({ length: operands }, () => 32 as const);
          return wordRow(`${opcode}${mode}${ftz}${sat}.f32`, 32, sources, evaluate, facts(opcode));
        }),
      ),
    ),
  ),
);

/** A result as its fp64 value and the remaining error, of which only the sign and whether it is 0 count. */
type Approximated = readonly [value: number, error: number];

/** a / b for fp32 numbers. */
function quotient(a: number, b: number): Approximated {
  const value = a / b;
  if (!Number.isFinite(value) || value === 0 || Math.abs(b) === Infinity) return [value, 0];
  const product = value * b;
  const rest = a - product - productError(value, b, product);
  return [value, rest / b];
}

/** √a for an fp32 number. */
function squareRoot(a: number): Approximated {
  const value = Math.sqrt(a);
  if (!Number.isFinite(value) || value === 0) return [value, 0];
  const square = value * value;
  const rest = a - square - productError(value, value, square);
  return [value, rest / (2 * value)];
}

const roundedOperations: Readonly<
  Record<string, readonly [operands: 1 | 2, (a: number, b: number) => Approximated]>
> = {
  div: [2, quotient],
  rcp: [1, (a) => quotient(1, a)],
  sqrt: [1, squareRoot],
};

function round([value, error]: Approximated, mode: RoundingMode, isFlushing: boolean): number {
  if (!Number.isFinite(value) || value === 0) return value;
  return isFlushing
    ? roundSumToFloat32FlushingToZero(value, error, mode)
    : roundSumToFloat32(value, error, mode);
}

const quotients = Object.entries(roundedOperations).flatMap(([opcode, [operands, compute]]) =>
  Object.entries(roundings).flatMap(([mode, rounding]) =>
    [false, true].map((isFlushing) => {
      const operand = (bits: number): number =>
        isFlushing ? flushed(f32, float32Of(bits)) : float32Of(bits);
      const evaluate = (a: number, b: number): number =>
        bitsOfFloat32(round(compute(operand(a), operand(b ?? 0)), rounding, isFlushing));
      const sources = Array.from({ length: operands }, () => 32 as const);
      const name = `${opcode}.${mode}${isFlushing ? '.ftz' : ''}.f32`;
      return wordRow(name, 32, sources, evaluate, facts(opcode));
    }),
  ),
);

/**
 * fp32: sums and products clamped to [0, 1], `mad`, and quotients, reciprocals and square roots rounded once in
 * four modes. The others are in the machine's rows.
 */
export const float32Arithmetic: readonly LaneInstruction[] = [...sums, ...quotients];
