import type { AttentionReference } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { type KernelBound, outputRounding } from '../bounds/index.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import type { Premises } from '../premises/premises.js';
import type { PooledProjections } from './pooled-projections.js';
import type { StructureLimits } from './structure-entries.js';
import { ErrorPool, type ErrorPoolState } from './error-pool.js';
import { type RowProjections, rowShareOfLargest, type Variances } from './row-tolerance.js';

/** The data that the structure tests judge, and their strictness. */
export interface StructureInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: Pick<GivenOutputs, 'out' | 'lse'>;
  readonly bound: KernelBound;
  readonly premises: Premises;
  readonly limits: StructureLimits;
}

/** The largest change of a score by a softcap's tanh, which is a function of the score; 0 without one. */
export function tanhError({ softcap }: Problem, { tanh, elementwise }: Premises): number {
  return softcap === null ? 0 : (tanh + 4 * elementwise) * softcap;
}

/** A smooth exponential's mean error over an octave, as a part of its largest. */
const meanOfExponential = 1 / 8;

/** The largest relative error of weights that are taken to err at random. */
const largestRandomError = 2 ** -4;

/** Mean loss of one addition to a sum that a tensor core truncates, relative to the sum. */
const truncatedAddition = 2 ** -26;

/** Sums over some rows of a head for the mean error of its LSE. */
export interface LseSums {
  readonly rows: number;
  readonly error: number;
  readonly systematic: number;
  /** The largest random errors, by unit. */
  readonly amplitudes: ReadonlyMap<number, number>;
}

/**
 * Sums the errors of the LSE over the rows of a head, and their bounds. Null where no LSE was given, and for a kernel
 * that declares something: only the worst case of each of its rows is known.
 *
 * @param head counted over the problem's [batch, heads]
 * @param unit by row: rows of one number may err alike
 */
export function sumLseErrors(
  input: StructureInput,
  head: number,
  unit: Int32Array,
): LseSums | null {
  const { reference, premises } = input;
  if (input.outputs.lse === null || !premises.isUsual) return null;
  const { queries } = reference.shape;
  let rows = 0;
  let error = 0;
  let systematic = 0;
  const amplitudes = new Map<number, number>();
  for (let row = head * queries; row < (head + 1) * queries; row++) {
    const ofRow = lseErrorOf(input, row);
    if (ofRow === null) continue;
    rows++;
    error += ofRow.error;
    systematic += ofRow.systematic;
    amplitudes.set(unit[row], (amplitudes.get(unit[row]) ?? 0) + ofRow.amplitude);
  }
  return { rows, error, systematic, amplitudes };
}

/** The error of one row's LSE; the largest systematic and the largest random part of it for any correct kernel. */
interface LseErrorOfRow {
  readonly error: number;
  readonly systematic: number;
  readonly amplitude: number;
}

/** The error of a row's LSE, and its bounds; null where there is no LSE, or nothing is known of it. */
export function lseErrorOf(
  { problem, reference, bound, premises, outputs: { lse } }: StructureInput,
  row: number,
): LseErrorOfRow | null {
  if (lse === null) return null;
  const { accumulation, elementwise, exponential, logarithm } = premises;
  const sumsTruncate = problem.q.format !== 'fp32' && problem.q.format !== 'fp64';
  const exact = reference.quantities.lse.values[row];
  const error = lse.values[row] - exact;
  const { keys, weight, typicalWeight, isCoarse, declared } = bound.row(row);
  if (!Number.isFinite(error) || isCoarse) return null;
  const size = Math.abs(exact) + Math.abs(reference.maximum[row]);
  const usualWeight = weight - declared.ofWeights;
  const systematic =
    elementwise * size +
    logarithm +
    reference.quantities.lse.radius[row] +
    outputRounding(lse.format, exact, 0) +
    tanhError(problem, premises) +
    (typicalWeight > largestRandomError ? typicalWeight : 0) +
    (sumsTruncate ? keys * truncatedAddition + (usualWeight - typicalWeight) / 8 : 0);
  const amplitude =
    typicalWeight - exponential + 4 * elementwise * size + Math.sqrt(3 * keys) * accumulation;
  return { error, systematic, amplitude };
}

/** Sums of the errors of the LSE over all rows of a head. */
export function joinLseSums(parts: readonly LseSums[]): LseSums {
  const amplitudes = new Map<number, number>();
  let [rows, error, systematic] = [0, 0, 0];
  for (const part of parts) {
    rows += part.rows;
    error += part.error;
    systematic += part.systematic;
    for (const [unit, amplitude] of part.amplitudes)
      amplitudes.set(unit, (amplitudes.get(unit) ?? 0) + amplitude);
  }
  return { rows, error, systematic, amplitudes };
}

/**
 * The mean error of a head's LSE, and the threshold that a correct kernel's exceeds with probability at most
 * 2·exp(−deviations²/2): see docs/theory/bounds.md, "The structure". Null where no LSE of the head is finite.
 *
 * @param pooled the weights of the head's rows by their place in an octave
 * @param exponential largest relative error of the exponential
 */
export function testMeanLse(
  { rows, error, systematic, amplitudes }: LseSums,
  pooled: PooledProjections,
  deviations: number,
  exponential: number,
): { readonly statistic: number; readonly threshold: number } | null {
  if (pooled.rows === 0 || rows === 0) return null;
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

/** The instrument that gives a row's slope. */
const slope = 0;

/** Variances of the slopes of rows that may err alike, with their weights: from their outputs' roundings, and from all else. */
interface Unit {
  readonly ofOutputs: number;
  readonly ofRest: number;
}

/** The sums of `SlopeDispersion`, as data. */
export interface DispersionState {
  readonly sums: readonly [measured: number, systematic: number, weight: number, ofOutputs: number];
  readonly units: readonly (readonly [number, Unit])[];
  readonly outputs: ErrorPoolState;
}

/**
 * The scatter of the slopes of a head's rows: the root mean square of each row's regression slope of the
 * output on the oracle, less one. A factor that each row gets wrong in its own way, as a reciprocal kept in
 * bf16 does, leaves their mean alone. A row weighs by the accuracy of its slope.
 */
export class SlopeDispersion {
  #measured = 0;
  #systematic = 0;
  #weight = 0;
  readonly #units = new Map<number, Unit>();
  readonly #outputs = new ErrorPool();
  #ofOutputs = 0;

  /** Rows of one unit may err alike. */
  add(row: RowProjections, variances: Variances, unit: number): void {
    const { signed, norm, systematic, known: ofKnown } = row;
    const weight = norm[slope];
    if (!(weight > 0)) return;
    // The sum of the roundings of P where they are known counts where it is more than random ones have.
    const ofWeights = Math.max(
      rowShareOfLargest(row, slope) * variances.weights[slope],
      ofKnown[slope] ** 2,
    );
    const ofRest = ofWeights + variances.others[slope];
    this.#outputs.mergeChannel(row.outputs.view(), slope);
    this.#ofOutputs += row.outputs.squared(slope);
    this.#measured += signed[slope] ** 2 / weight;
    this.#systematic += systematic[slope] ** 2 / weight;
    this.#weight += weight;
    const known = this.#units.get(unit) ?? { ofOutputs: 0, ofRest: 0 };
    this.#units.set(unit, {
      ofOutputs: known.ofOutputs + variances.outputs[slope] / weight,
      ofRest: known.ofRest + ofRest / weight,
    });
  }

  /** A copy of the sums, as data. */
  state(): DispersionState {
    return {
      sums: [this.#measured, this.#systematic, this.#weight, this.#ofOutputs],
      units: [...this.#units],
      outputs: this.#outputs.state(),
    };
  }

  /** Adds the sums over other rows of the head, by another thread perhaps. */
  mergeState({ sums, units, outputs }: DispersionState): void {
    const [measured, systematic, weight, ofOutputs] = sums;
    this.#measured += measured;
    this.#systematic += systematic;
    this.#weight += weight;
    this.#ofOutputs += ofOutputs;
    this.#outputs.mergeChannel(outputs, 0);
    for (const [unit, one] of units) {
      const known = this.#units.get(unit) ?? { ofOutputs: 0, ofRest: 0 };
      this.#units.set(unit, {
        ofOutputs: known.ofOutputs + one.ofOutputs,
        ofRest: known.ofRest + one.ofRest,
      });
    }
  }

  clear(): void {
    this.#measured = this.#systematic = this.#weight = this.#ofOutputs = 0;
    this.#outputs.clear();
    this.#units.clear();
  }

  /**
   * The root mean square slope of a head, and the threshold that it exceeds with probability `falseAlarmRate` only: the tail
   * of a sum of squares of sub-Gaussian variables (Hsu, Kakade and Zhang 2012, Theorem 2.1), as in the spread.
   */
  result(falseAlarmRate: number): { readonly statistic: number; readonly threshold: number } {
    const t = Math.log(1 / falseAlarmRate);
    // Rows whose outputs round alike do not scatter independently by these roundings: the variance of the sum of
    // all slopes, against the sum of their variances, tells how many of them err as one.
    const alike = Math.max(1, this.#outputs.squared() / this.#ofOutputs || 1);
    let trace = 0;
    let squares = 0;
    let largest = 0;
    for (const { ofOutputs, ofRest } of this.#units.values()) {
      trace += ofRest + ofOutputs;
      squares += ofRest ** 2 + 2 * ofRest * ofOutputs + alike * ofOutputs ** 2;
      largest = Math.max(largest, ofRest + alike * ofOutputs);
    }
    const most = trace + 2 * Math.sqrt(squares * t) + 2 * largest * t;
    const mean = (energy: number) => (this.#weight > 0 ? Math.sqrt(energy / this.#weight) : 0);
    return {
      statistic: mean(this.#measured),
      threshold: mean((Math.sqrt(most) + Math.sqrt(this.#systematic)) ** 2),
    };
  }
}
