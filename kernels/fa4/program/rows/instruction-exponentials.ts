import {
  exp2Coefficients,
  type PolynomialDegree,
} from '../../../online-softmax/exp2-polynomial.js';
import {
  createRegisters,
  immediate,
  immediateFloat32,
  registerRun,
  type Issuer,
  type WarpRegisters,
} from './issuer.js';

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
 * Dao-AILab/flash-attention; its packed additions are written with the FTZ that exp2.ts tells of.
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
