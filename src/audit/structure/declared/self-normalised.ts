import type { RowProjections, Variances } from '../row-tolerance.js';
import type { StructurePlace } from '../structure-entries.js';
import type { StructureTest, WorstResults } from '../structure-result.js';
import { channels } from './score-places.js';

/** The instruments of scale and of bias among those that errors are projected on. */
export const selfInstruments = [0, 2] as const;

/** Sums of the rows of one unit, which may err alike, on each channel. */
interface UnitSums {
  /** Σ of the errors found. */
  readonly found: Float64Array;
  /** Standard deviations and worst cases of any correct kernel's errors in that sum. */
  readonly random: Float64Array;
  readonly systematic: Float64Array;
}

/** The sums of `SelfNormalised`, as data. */
export interface SelfNormalisedState {
  /** Sums over all rows, by channel: worst cases of roundings of written scores, and their second order. */
  readonly written: Float64Array;
  readonly curvature: Float64Array;
  readonly lseRows: number;
  readonly units: readonly (readonly [number, UnitSums])[];
}

function noSums(): UnitSums {
  const numbers = () => new Float64Array(channels.length);
  return { found: numbers(), random: numbers(), systematic: numbers() };
}

/** The error of an LSE in one row, and the bounds of any correct kernel's. */
export interface LseError {
  readonly error: number;
  readonly random: number;
  readonly systematic: number;
}

/** The errors of a row, and their possible causes. */
interface DeclaredRow {
  readonly row: RowProjections;
  readonly variances: Variances;
  /** Null where no LSE is judged. */
  readonly lse: LseError | null;
}

/**
 * Distances from zero of sums over a head's rows, in units of the spread that the same rows have: for errors that are equally
 * likely of either sign, unit by unit, P(|Σ x| > z √(Σ x²)) ≤ 2·exp(−z²/2) whatever their size, so that a coarse premise blunts
 * nothing. The errors of any correct kernel, which are not equally likely of either sign, are allowed beside: docs/theory/bounds.md,
 * Theorem 14.
 */
export class SelfNormalised {
  readonly #written = new Float64Array(channels.length);
  readonly #curvature = new Float64Array(channels.length);
  readonly #units = new Map<number, UnitSums>();
  /** Number of rows whose LSE is among the sums. */
  lseRows = 0;

  /**
   * Adds a row.
   * @param curvature by channel, the second order of written scores' roundings
   */
  add({ row, variances, lse }: DeclaredRow, unit: number, curvature: Float64Array): void {
    const sums = this.#unit(unit);
    selfInstruments.forEach((d, channel) => {
      const { outputs, others } = variances;
      // The sum of the roundings of P where they are known counts where it is more than random ones have.
      const weights = Math.max(variances.weights[d], row.known[d] ** 2);
      const written = row.written[d];
      this.#written[channel] += written;
      this.#curvature[channel] += curvature[channel];
      sums.found[channel] += row.signed[d];
      sums.random[channel] += Math.sqrt(weights + outputs[d] + others[d]);
      sums.systematic[channel] += row.systematic[d] - written + curvature[channel];
    });
    if (lse === null) return;
    const channel = 2;
    this.lseRows++;
    this.#curvature[channel] += curvature[channel];
    sums.found[channel] += lse.error;
    sums.random[channel] += lse.random;
    sums.systematic[channel] += lse.systematic + curvature[channel];
  }

  #unit(unit: number): UnitSums {
    const known = this.#units.get(unit) ?? noSums();
    this.#units.set(unit, known);
    return known;
  }

  state(): SelfNormalisedState {
    return {
      written: this.#written.slice(),
      curvature: this.#curvature.slice(),
      lseRows: this.lseRows,
      units: [...this.#units],
    };
  }

  /** Adds the sums over other rows of the head, by another thread perhaps. */
  mergeState({ written, curvature, lseRows, units }: SelfNormalisedState): void {
    this.lseRows += lseRows;
    written.forEach((x, d) => (this.#written[d] += x));
    curvature.forEach((x, d) => (this.#curvature[d] += x));
    for (const [unit, from] of units) {
      const to = this.#unit(unit);
      for (const name of ['found', 'random', 'systematic'] as const)
        from[name].forEach((x, d) => (to[name][d] += x));
    }
  }

  clear(): void {
    this.lseRows = 0;
    this.#written.fill(0);
    this.#curvature.fill(0);
    this.#units.clear();
  }

  /** The bound of a channel's sum for any correct kernel, by its known variances: at its worst, and by chance. */
  usual(channel: number, deviations: number): number {
    let [systematic, variance] = [0, 0];
    for (const unit of this.#units.values()) {
      systematic += unit.systematic[channel];
      variance += unit.random[channel] ** 2;
    }
    return systematic + deviations * Math.sqrt(variance);
  }

  /**
   * The allowance of a channel's sum, at its worst, for written scores beyond any correct kernel, which the tests by known
   * variances count.
   */
  written(channel: number): number {
    return this.#written[channel];
  }

  /** The sum of a channel. */
  sum(channel: number): number {
    let sum = 0;
    for (const { found } of this.#units.values()) sum += found[channel];
    return sum;
  }

  /**
   * The bound that the part of a sum which is equally likely of either sign exceeds with probability at most
   * 2·exp(−deviations²/2), and its second order. Σ x² contains the errors of any correct kernel: their √ is added, by the tail
   * of a sum of squares (Hsu, Kakade and Zhang 2012, Theorem 2.1).
   */
  tolerance(channel: number, deviations: number): number {
    const t = deviations ** 2 / 2;
    let [found, trace, squares, largest, systematic] = [0, 0, 0, 0, 0];
    for (const unit of this.#units.values()) {
      const variance = unit.random[channel] ** 2;
      found += unit.found[channel] ** 2;
      trace += variance;
      squares += variance ** 2;
      largest = Math.max(largest, variance);
      systematic += unit.systematic[channel] ** 2;
    }
    const usual = Math.sqrt(trace + 2 * Math.sqrt(squares * t) + 2 * largest * t);
    return (
      deviations * (Math.sqrt(found) + usual + Math.sqrt(systematic)) + this.#curvature[channel]
    );
  }
}

/** A sum over a head's rows beside the bounds of any correct kernel, by the channel's test. */
export interface HeadSum {
  readonly test: (typeof channels)[number] & StructureTest;
  /** The divisor that turns the sum into the test's statistic. */
  readonly norm: number;
  /** The bound of the sum for any correct kernel. */
  readonly usual: number;
  /** The bound of the roundings of written scores that all rows share. */
  readonly shared: number;
}

/** Adds the results of a head, each beside that of the same test by known variances. */
export function judgeSelfNormalised(
  worst: WorstResults,
  of: SelfNormalised,
  place: StructurePlace,
  sums: readonly HeadSum[],
  deviations: number,
): void {
  for (const { test, norm, usual, shared } of sums) {
    const channel = channels.indexOf(test);
    if (!(norm > 0 && norm < Infinity)) continue;
    const threshold = usual + shared + of.tolerance(channel, deviations);
    worst.add({
      test,
      ...place,
      firstKey: null,
      keys: null,
      statistic: of.sum(channel) / norm,
      threshold: threshold / norm,
    });
  }
}
