import { outputRounding } from '../bounds/index.js';
import type { PooledProjections } from './pooled-projections.js';
import { type StructureInput, tanhError } from './structure-input.js';

/** A smooth exponential's mean error over an octave, as a part of its largest. */
const meanOfExponential = 1 / 8;

/** Weights that may be off by more, relatively, are no longer taken to err at random. */
const largestRandomError = 2 ** -4;

/** Mean loss of one addition to a sum that a tensor core truncates, relative to the sum. */
const truncatedAddition = 2 ** -26;

/**
 * The mean error of a head's LSE, and what a correct kernel's exceeds with probability at most
 * 2·exp(−deviations²/2): see docs/bounds.md, "The structure". Null where no LSE was given, or none of the
 * head's is finite.
 *
 * @param pooled the weights of the head's rows by their place in an octave
 * @param unit by row: rows of one number may err alike
 */
export function testMeanLse(
  input: StructureInput,
  pooled: PooledProjections,
  head: number,
  deviations: number,
  unit: Int32Array,
): { readonly statistic: number; readonly threshold: number } | null {
  const { problem, reference, bound, premises } = input;
  const { lse } = input.outputs;
  // Of a kernel that declares something only the worst case of each row is known.
  if (lse === null || pooled.rows === 0 || !premises.isUsual) return null;
  const { queries } = reference.shape;
  const { accumulation, elementwise, exponential, logarithm } = premises;
  const sumsTruncate = problem.q.format !== 'fp32' && problem.q.format !== 'fp64';
  let rows = 0;
  let error = 0;
  let systematic = 0;
  const amplitudes = new Map<number, number>();
  for (let row = head * queries; row < (head + 1) * queries; row++) {
    const exact = reference.quantities.lse.values[row];
    const ofRow = lse.values[row] - exact;
    if (!Number.isFinite(ofRow)) continue;
    const { keys, weight, typicalWeight, isCoarse } = bound.row(row);
    if (isCoarse) continue;
    rows++;
    error += ofRow;
    const size = Math.abs(exact) + Math.abs(reference.maximum[row]);
    systematic +=
      elementwise * size +
      logarithm +
      reference.quantities.lse.radius[row] +
      outputRounding(lse.format, exact, 0) +
      tanhError(problem, premises) +
      (typicalWeight > largestRandomError ? typicalWeight : 0) +
      (sumsTruncate ? keys * truncatedAddition + (weight - typicalWeight) / 8 : 0);
    const random =
      typicalWeight - exponential + 4 * elementwise * size + Math.sqrt(3 * keys) * accumulation;
    amplitudes.set(unit[row], (amplitudes.get(unit[row]) ?? 0) + random);
  }
  if (rows === 0) return null;
  let squares = 0;
  for (const amplitude of amplitudes.values()) squares += amplitude ** 2;
  const ofExponential = meanOfExponential + pooled.meanExponentialError(deviations);
  return {
    statistic: error / rows,
    threshold:
      systematic / rows +
      exponential * ofExponential +
      (deviations / Math.sqrt(3)) * (Math.sqrt(squares) / rows),
  };
}
