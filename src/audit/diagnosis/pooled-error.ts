import { formats, unitRoundoff } from '../../formats/index.js';
import { unexplained, type Diagnosis } from './diagnosis.js';
import type { DiagnosisInput } from './diagnosis-input.js';
import type { RowDamage } from './row-damage.js';
import { rowsOfFailingStructure } from './row-sample.js';

/** Parts of the rows whose slopes must agree before a slope counts as uniform. */
const parts = 6;
/** Standard errors that the parts' slopes may differ by from the common one. */
const tolerated = 4;
/** And that the common one must differ from zero by. */
const evident = 6;

interface Slope {
  readonly value: number;
  readonly standardError: number;
}

/** Regression slope of the error on the exact output, rows weighing by their rounding. */
function slopeOf(
  { reference, out }: DiagnosisInput,
  { noise }: RowDamage,
  rows: readonly number[],
): Slope {
  const { vDim } = reference.shape;
  let cross = 0;
  let squares = 0;
  for (const row of rows) {
    const variance = noise[row]! / vDim;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const exact = reference.out[i]!;
      cross += ((out[i]! - exact) * exact) / variance;
      squares += exact ** 2 / variance;
    }
  }
  return { value: cross / squares, standardError: 1 / Math.sqrt(squares) };
}

/**
 * Names an error too small for any single row to show: a common factor on all rows of the failing
 * scope. Truncated weights shrink the output by up to 2u, hence they are named where the factor
 * admits them. Null when the error is no common factor.
 */
export function explainPooledError(input: DiagnosisInput, damage: RowDamage): Diagnosis | null {
  const { reference, problem } = input;
  const rows = rowsOfFailingStructure(input).filter((row) => damage.noise[row]! > 0);
  if (rows.length < 2 * parts) return null;
  const whole = slopeOf(input, damage, rows);
  const size = Math.ceil(rows.length / parts);
  const slopes = Array.from({ length: parts }, (_, i) =>
    slopeOf(input, damage, rows.slice(i * size, (i + 1) * size)),
  );
  const agree = slopes.every(
    ({ value, standardError }) => Math.abs(value - whole.value) <= tolerated * standardError,
  );
  if (!agree || !(Math.abs(whole.value) > evident * whole.standardError))
    return unexplained([
      'no single row errs by more than rounding explains, and the rows have no factor in common',
    ]);
  const u = unitRoundoff(formats[problem.v.format]);
  const truncation = whole.value < 0 && whole.value >= -2 * u;
  const percent = Number((Math.abs(whole.value) * 100).toPrecision(2));
  const where = rows.length === reference.shape.queries ? '' : ` of ${rows.length} rows in a row`;
  return {
    id: 'output-scale',
    equivalents: truncation ? ['weights-truncated'] : [],
    technique: null,
    sentence: `the output is ${percent} % too ${whole.value < 0 ? 'small' : 'large'} on every row${where}: row sum, final scale${truncation ? ' or truncated P' : ''}`,
    evidence: [
      `${parts} parts of the rows agree on the factor; its standard error is ${Number((whole.standardError * 100).toPrecision(1))} %`,
      'no single row errs by more than rounding explains',
    ],
  };
}
