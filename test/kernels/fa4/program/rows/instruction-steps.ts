import {
  createRegisters,
  immediate,
  immediateFloat32,
  type Issuer,
  type Operand,
  register,
  registerRun,
  rename,
  type WarpRegisters,
} from './issuer.js';
import type { VisibleColumns } from '../../../../../kernels/fa4/program/rows/row-arithmetic.js';
import {
  exp2Coefficients,
  type PolynomialDegree,
} from '../../../../../kernels/online-softmax/exp2-polynomial.js';

/** Columns per word of the mask. */
const wordColumns = 32;

const zero = immediate(0);
const allBits = immediate(0xffffffff);
const minusInfinity = immediateFloat32(-Infinity);
const columnBits = Array.from({ length: wordColumns }, (_, i) => immediate((1 << i) >>> 0));

/** Limits of the lanes as registers. */
function limitRegisters(limits: Int32Array): WarpRegisters {
  const registers = createRegisters(1);
  registers.words.set(limits);
  return registers;
}

/**
 * Puts −∞ in place of the scores that a row does not see: for every 32 columns a word with the bits of
 * those below the upper limit and, where there is one, not below the lower limit; then a choice for
 * each column. Shifts by more than 31 leave 0. Source: `mask_r2p_lambda`, `r2p_bitmask_below` and
 * `r2p_bitmask_above` in flash_attn/cute/mask.py of Dao-AILab/flash-attention.
 */
export function maskRow(
  { issue }: Issuer,
  row: WarpRegisters,
  { begin, end }: VisibleColumns,
): void {
  const scratch = createRegisters(3);
  const [mask, bits, chosen] = [0, 1, 2].map((i) => register(scratch, i)) as [
    Operand,
    Operand,
    Operand,
  ];
  const upper = register(limitRegisters(end), 0);
  const lower = begin === null ? null : register(limitRegisters(begin), 0);
  for (let first = 0; first < row.registersPerLane; first += wordColumns) {
    issue('sub.s32', bits, [immediate(first + wordColumns), upper]);
    issue('max.s32', bits, [bits, zero]);
    issue('shr.u32', mask, [allBits, bits]);
    if (lower !== null) {
      issue('sub.s32', bits, [lower, immediate(first)]);
      issue('max.s32', bits, [bits, zero]);
      issue('shl.b32', bits, [allBits, bits]);
      issue('and.b32', mask, [mask, bits]);
    }
    columnBits.forEach((bit, i) => {
      const score = register(row, first + i);
      issue('and.b32', bits, [mask, bit]);
      issue('setp.ne.s32', chosen, [bits, zero]);
      issue('selp.f32', score, [score, minusInfinity, chosen]);
    });
  }
}

/** Accumulators of a reduction, each of two columns. */
const accumulators = 4;
const stepColumns = 2 * accumulators;

/**
 * The largest of a row's scores and of the maximum in use before, into register 0 of `largest`: four
 * maxima over pairs of columns, three operands at a time, then a tree. A NaN loses. Source:
 * `fmax_reduce` in flash_attn/cute/utils.py of Dao-AILab/flash-attention.
 *
 * @param before in its register 0; null in the first block, where −∞ takes its place. The kernel has
 *   no operand there, so that a row whose first scores are all NaN gets the maximum NaN, which the
 *   forward models as −∞. O and the LSE are the same, since the row's sum and O are NaN from then on;
 *   its next α is 0 instead of NaN.
 */
export function largestOfRow(
  { issue }: Issuer,
  row: WarpRegisters,
  before: WarpRegisters | null,
  largest: WarpRegisters,
): void {
  const lanes = createRegisters(accumulators);
  const initial = before === null ? minusInfinity : register(before, 0);
  issue('max.f32', register(lanes, 0), [initial, register(row, 0), register(row, 1)]);
  for (let i = 1; i < accumulators; i++)
    issue('max.f32', register(lanes, i), [register(row, 2 * i), register(row, 2 * i + 1)]);
  const steps = row.registersPerLane / stepColumns - 1;
  for (let i = 0; i < accumulators; i++) {
    const at = stepColumns + 2 * i;
    const pair = [registerRun(row, at, stepColumns), registerRun(row, at + 1, stepColumns)];
    issue('max.f32', register(lanes, i), [register(lanes, i), ...pair], steps);
  }
  issue('max.f32', register(lanes, 0), [register(lanes, 0), register(lanes, 1)]);
  const rest = [register(lanes, 2), register(lanes, 3)];
  issue('max.f32', register(largest, 0), [register(lanes, 0), ...rest]);
}

/**
 * The sum of a row's weights, into register 0 of `sum`: four packed accumulators over pairs of columns,
 * then a tree. Source: `fadd_reduce` in flash_attn/cute/utils.py of Dao-AILab/flash-attention.
 *
 * @param start initial value of the first accumulator, a pair in registers 0 and 1; null in the first
 *   block: it begins with its first pair
 */
export function sumOfRow(
  { issue }: Issuer,
  row: WarpRegisters,
  start: WarpRegisters | null,
  sum: WarpRegisters,
): void {
  const lanes = createRegisters(stepColumns);
  const pairAt = (i: number) => register(lanes, 2 * i);
  rename(row, 0, lanes, 0, stepColumns);
  if (start !== null) issue('add.rn.f32x2', pairAt(0), [register(start, 0), pairAt(0)]);
  const steps = row.registersPerLane / stepColumns - 1;
  for (let i = 0; i < accumulators; i++) {
    const pairs = registerRun(row, stepColumns + 2 * i, accumulators);
    issue('add.rn.f32x2', pairAt(i), [pairAt(i), pairs], steps);
  }
  issue('add.rn.f32x2', pairAt(0), [pairAt(0), pairAt(1)]);
  issue('add.rn.f32x2', pairAt(2), [pairAt(2), pairAt(3)]);
  issue('add.rn.f32x2', pairAt(0), [pairAt(0), pairAt(2)]);
  issue('add.rn.f32', register(sum, 0), [register(lanes, 0), register(lanes, 1)]);
}

/** Neighbouring columns of a row that are computed alike. */
interface ColumnRun {
  readonly first: number;
  readonly columns: number;
  readonly isPolynomial: boolean;
}

function columnRuns(isPolynomial: readonly boolean[]): ColumnRun[] {
  const runs: ColumnRun[] = [];
  for (let first = 0; first < isPolynomial.length;) {
    const next = isPolynomial.indexOf(!isPolynomial[first], first);
    const end = next < 0 ? isPolynomial.length : next;
    runs.push({ first, columns: end - first, isPolynomial: isPolynomial[first] });
    first = end;
  }
  return runs;
}

/** 2^23 + 2^22: added to a number of less than 2^22 it leaves the integer part in the lowest bits. */
const toInteger = immediateFloat32(2 ** 23 + 2 ** 22);
const smallestInput = immediateFloat32(-127);
const exponentShift = immediate(23);

/**
 * A function that replaces the exponents in the registers of a row by their exponentials: in the columns
 * of `isPolynomial` by the software exp2, pair by pair, in the others by ex2.approx.ftz.f32. Source:
 * `apply_exp2_convert` in flash_attn/cute/softmax.py and `ex2_emulation_2` in utils.py of
 * Dao-AILab/flash-attention; exp2-polynomial.ts explains why its packed additions are written with FTZ.
 */
export function exponentials(
  { issue }: Issuer,
  isPolynomial: readonly boolean[],
  degree: PolynomialDegree,
): (row: WarpRegisters) => void {
  const columns = isPolynomial.length;
  const [clamped, rounded, fraction, power] = [0, columns, 2 * columns, 3 * columns];
  const scratch = createRegisters(4 * columns);
  const coefficients = exp2Coefficients[degree].map(immediateFloat32);
  const runs = columnRuns(isPolynomial);

  function polynomial(row: WarpRegisters, { first, columns: count }: ColumnRun): void {
    const x = registerRun(row, first);
    const pairs = count / 2;
    const at = (from: number) => registerRun(scratch, from);
    issue('max.f32', at(clamped), [x, smallestInput], count);
    issue('add.rm.ftz.f32x2', at(rounded), [at(clamped), toInteger], pairs);
    issue('sub.rn.f32x2', at(fraction), [at(rounded), toInteger], pairs);
    issue('sub.rn.f32x2', at(fraction), [at(clamped), at(fraction)], pairs);
    let highest = coefficients[degree];
    for (let k = degree - 1; k >= 0; k--) {
      issue('fma.rn.f32x2', at(power), [highest, at(fraction), coefficients[k]], pairs);
      highest = at(power);
    }
    issue('shl.b32', at(rounded), [at(rounded), exponentShift], count);
    issue('add.s32', x, [at(rounded), at(power)], count);
  }

  return (row) => {
    for (const run of runs) {
      if (run.isPolynomial) polynomial(row, run);
      else {
        const x = registerRun(row, run.first);
        issue('ex2.approx.ftz.f32', x, [x], run.columns);
      }
    }
  };
}
