import {
  addFloat64,
  divideFloat64,
  fusedMultiplyAddFloat64,
  multiplyFloat64,
  squareRootFloat64,
} from '../../../arith/index.js';
import type { RoundingMode } from '../../../formats/index.js';
import { floatTypes, type LaneInstruction, type LaneValue, roundings } from '../../../isa/index.js';
import { type FamilyFacts, row } from './row.js';

const { f64 } = floatTypes;

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'is',
    unit: 'fp64',
    evidence: 'isa',
    source: `PTX ISA, Floating Point Instructions: ${instruction}`,
  };
}

const quietBit = 1n << 51n;
const infinity = 0x7ff0000000000000n;
const magnitude = (1n << 63n) - 1n;
/** The result of an invalid operation without a NaN operand. */
const invalid = 0xfff8000000000000n;

function isNan(bits: bigint): boolean {
  return (bits & magnitude) > infinity;
}

/** The order in which the unit that adds and multiplies looks for a NaN: b, then c, then a. */
function inUnit([a, ...others]: readonly bigint[]): readonly bigint[] {
  return [...others, a];
}

/** The bits of a result: for NaN the bits of the first operand that is NaN, made quiet. */
function bitsOf(value: number, operands: readonly bigint[]): bigint {
  if (value === value) return f64.bitsOf(value) as bigint;
  const nan = operands.find(isNan);
  return nan === undefined ? invalid : nan | quietBit;
}

type Compute = (operands: readonly number[], mode: RoundingMode) => number;

/** The number of operands of each, and whether it may lack a rounding modifier. */
const operations: Readonly<Record<string, readonly [1 | 2 | 3, boolean, Compute]>> = {
  add: [2, true, ([a, b], mode) => addFloat64(a, b, mode)],
  sub: [2, true, ([a, b], mode) => addFloat64(a, -b, mode)],
  mul: [2, true, ([a, b], mode) => multiplyFloat64(a, b, mode)],
  fma: [3, false, ([a, b, c], mode) => fusedMultiplyAddFloat64(a, b, c, mode)],
  mad: [3, false, ([a, b, c], mode) => fusedMultiplyAddFloat64(a, b, c, mode)],
  div: [2, false, ([a, b], mode) => divideFloat64(a, b, mode)],
  rcp: [1, false, ([a], mode) => divideFloat64(1, a, mode)],
  sqrt: [1, false, ([a], mode) => squareRootFloat64(a, mode)],
};

function rowOf(name: string, operands: number, compute: (bits: readonly bigint[]) => bigint) {
  const sources = Array.from({ length: operands }, () => 64 as const);
  const evaluate = (...values: LaneValue[]): bigint => compute(values.map(BigInt));
  return row(
    name,
    { destinations: [64], sources, evaluate },
    facts(name.slice(0, name.indexOf('.'))),
  );
}

/** Operations computed by a sequence of instructions, not by the unit that adds and multiplies. */
const sequences = ['div', 'rcp', 'sqrt'];

const rounded = Object.entries(operations).flatMap(([opcode, [operands, hasDefault, compute]]) => {
  const order = sequences.includes(opcode) ? (bits: readonly bigint[]) => bits : inUnit;
  return [...(hasDefault ? [''] : []), ...Object.keys(roundings).map((mode) => `.${mode}`)].map(
    (mode) => {
      const rounding = roundings[mode.slice(1)] ?? 'nearest-even';
      return rowOf(`${opcode}${mode}.f64`, operands, (bits) =>
        bitsOf(compute(bits.map(f64.numberOf), rounding), order(bits)),
      );
    },
  );
});

/** An extremum in which −0 is less than +0; a NaN loses, and of two NaNs the second is the result, made quiet. */
function extremum(isMaximum: boolean, [a, b]: readonly bigint[]): bigint {
  const [x, y] = [f64.numberOf(a), f64.numberOf(b)];
  if (x !== x) return y === y ? b : b | quietBit;
  if (y !== y) return a;
  return f64.bitsOf(isMaximum ? Math.max(x, y) : Math.min(x, y)) as bigint;
}

const others = [
  rowOf('min.f64', 2, (bits) => extremum(false, bits)),
  rowOf('max.f64', 2, (bits) => extremum(true, bits)),
  rowOf('neg.f64', 1, ([a]) => (isNan(a) ? a | quietBit : a ^ (1n << 63n))),
  rowOf('abs.f64', 1, ([a]) => (isNan(a) ? a | quietBit : a & magnitude)),
];

/**
 * fp64 in four rounding modes, subnormals kept. A NaN operand is passed on, made quiet, with its sign; PTX leaves the
 * NaN open, so an H200 decides.
 */
export const float64Arithmetic: readonly LaneInstruction[] = [...rounded, ...others];
