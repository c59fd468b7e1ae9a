import { outputPlaces, type CommonOffset } from './common-offset.js';
import { ErrorPool, type ErrorPoolState } from './error-pool.js';
import {
  leastTolerance,
  restOf,
  shareOfLargest,
  shiftedRounding,
  smoothPlaces,
  squaresAt,
  variancesOf,
  weightFamilies,
  type RowProjections,
  type Variances,
} from './row-tolerance.js';

/** Rows that may err alike. */
interface SharedRows {
  readonly weights: ErrorPool;
  readonly outputs: ErrorPool;
  readonly common: Float64Array;
  readonly smooth: Float64Array;
  readonly mass: Float64Array;
  /** Σ over the rows of the remaining standard deviation where weights that round alike are at their worst. */
  readonly rest: Float64Array;
}

/** The sums of `PooledProjections`, as data. */
export interface PooledState {
  readonly rows: number;
  readonly massVariance: number;
  readonly sums: readonly Float64Array[];
  readonly shared: readonly {
    readonly unit: number;
    readonly weights: ErrorPoolState;
    readonly outputs: ErrorPoolState;
    readonly sums: readonly Float64Array[];
  }[];
}

/** The kinds of `Variances`. */
const causes = ['weights', 'outputs', 'others'] as const;

/** Sums of the errors of some rows on each instrument: of a tile of queries, or of a head. */
export class PooledProjections {
  readonly signed: Float64Array;
  readonly norm: Float64Array;
  /** Number of places of an octave by which weights are told apart. */
  readonly places: number;
  /** Σ w·X·v by place in an octave, per instrument and family. */
  readonly phases: Float64Array;
  /** Σ c by place in an ulp, of the outputs' rounding: per instrument. */
  readonly outputs: Float64Array;
  rows = 0;
  readonly #count: number;
  readonly #exponential: number;
  readonly #offset: CommonOffset | null;
  readonly #variances: Variances;
  readonly #weightsWorst: Float64Array;
  /** The worst case of weights of a row that round alike; and, for rows without a like, the variance of the rest. */
  readonly #coherent: Float64Array;
  readonly #independent: Float64Array;
  readonly #outputWorst: Float64Array;
  /** The variance of the sums over keys, for rows without a like. */
  readonly #accumulated: Float64Array;
  readonly #systematic: Float64Array;
  /** Σ w·X·O by coarse place, per instrument and family, and Σ w per family. */
  readonly #own: Float64Array;
  readonly #mass: Float64Array;
  /** Σ (w·X·v)² by coarse place, per instrument and family. */
  readonly #squares: Float64Array;
  readonly #shared = new Map<number, SharedRows>();
  /** The squared part of the weights' mean by coarse place, for rows without a like. */
  #massVariance = 0;

  /**
   * @param offset null where P is as fine as fp32
   * @param exponential largest relative error of the exponential
   */
  constructor(count: number, offset: CommonOffset | null, exponential: number) {
    const numbers = () => new Float64Array(count);
    this.#count = count;
    this.#exponential = exponential;
    this.#offset = offset;
    this.places = offset?.places ?? smoothPlaces;
    this.signed = numbers();
    this.norm = numbers();
    this.#weightsWorst = numbers();
    this.#coherent = numbers();
    this.#independent = numbers();
    this.#outputWorst = numbers();
    this.#accumulated = numbers();
    this.#systematic = numbers();
    this.#variances = { weights: numbers(), outputs: numbers(), others: numbers() };
    this.phases = new Float64Array(this.places * count * weightFamilies);
    this.#own = new Float64Array(smoothPlaces * count * weightFamilies);
    this.#mass = new Float64Array(smoothPlaces * weightFamilies);
    this.#squares = new Float64Array(smoothPlaces * count * weightFamilies);
    this.outputs = new Float64Array(outputPlaces * count);
  }

  clear(): void {
    this.rows = 0;
    this.#massVariance = 0;
    for (const numbers of this.#sums()) numbers.fill(0);
    this.#shared.clear();
  }

  /** Adds a row; its weights and outputs by place are here already. `unit` is null where no row is like it. */
  add(row: RowProjections, variances: Variances, unit: number | null): void {
    const count = this.#count;
    this.rows++;
    for (let d = 0; d < count; d++) {
      this.signed[d] += row.signed[d];
      this.norm[d] += row.norm[d];
      this.#weightsWorst[d] += row.rounding * row.weights.absolute(d);
      this.#coherent[d] += row.rounding * row.weights.coherent(d);
      this.#outputWorst[d] += row.outputWorst[d];
      this.#systematic[d] += row.systematic[d];
    }
    this.#addSquares(row);
    if (unit === null) {
      for (const cause of causes)
        variances[cause].forEach((x, d) => (this.#variances[cause][d] += x));
      for (let d = 0; d < count; d++) {
        this.#independent[d] += restOf(row, d) ** 2;
        this.#accumulated[d] += row.accumulated[d] ** 2 / 3;
      }
      this.#massVariance += squaresAt(row.mass, 0);
      return;
    }
    const shared = this.#sharedRows(unit);
    shared.weights.merge(row.weights.view(), new Float64Array(count + 1).fill(row.rounding));
    shared.outputs.merge(row.outputs.view(), new Float64Array(count).fill(1));
    // Outputs that cancel do not show which sums are alike.
    for (let d = 0; d < count; d++)
      shared.common[d] += Math.hypot(row.common[d], row.accumulated[d]);
    for (let d = 0; d < count; d++) shared.rest[d] += restOf(row, d);
    addTo(shared.smooth, row.smooth);
    addTo(shared.mass, row.mass);
  }

  /** The sums over the rows of one unit: zeros at first. */
  #sharedRows(unit: number): SharedRows {
    const known = this.#shared.get(unit);
    if (known !== undefined) return known;
    const count = this.#count;
    const shared = {
      weights: new ErrorPool(count + 1),
      outputs: new ErrorPool(count),
      common: new Float64Array(count),
      smooth: new Float64Array(count * smoothPlaces),
      mass: new Float64Array(weightFamilies * smoothPlaces),
      rest: new Float64Array(count),
    };
    this.#shared.set(unit, shared);
    return shared;
  }

  #addSquares({ squares, shifts }: RowProjections): void {
    shifts.forEach((shift, family) => {
      const places = Math.round((shift - Math.floor(shift)) * smoothPlaces);
      for (let d = 0; d < this.#count; d++)
        for (let place = 0; place < smoothPlaces; place++) {
          const to = (d * weightFamilies + family) * smoothPlaces;
          this.#squares[to + ((place + places) % smoothPlaces)] +=
            squares[d * smoothPlaces + place];
        }
    });
  }

  /** Adds a row's weights by coarse place, and the same as parts of the sum behind its LSE; `own` is O·X per instrument. */
  addMass(mass: Float64Array, own: Float64Array, massOfLse: Float64Array): void {
    addTo(this.#mass, massOfLse);
    for (let d = 0; d < this.#count; d++)
      for (let at = 0; at < mass.length; at++) this.#own[d * mass.length + at] += own[d] * mass[at];
  }

  /** All sums by instrument or by place. */
  #sums(): Float64Array[] {
    const { weights, outputs, others } = this.#variances;
    return [
      ...[this.signed, this.norm, this.#weightsWorst, this.#outputWorst, this.#systematic],
      ...[this.#coherent, this.#independent, weights, outputs, others],
      ...[this.phases, this.#own, this.#mass, this.#squares, this.outputs, this.#accumulated],
    ];
  }

  /** A copy of the sums, as data. */
  state(): PooledState {
    return {
      rows: this.rows,
      massVariance: this.#massVariance,
      sums: this.#sums().map((numbers) => numbers.slice()),
      shared: [...this.#shared].map(([unit, { weights, outputs, common, smooth, mass, rest }]) => ({
        unit,
        weights: weights.state(),
        outputs: outputs.state(),
        sums: [common.slice(), smooth.slice(), mass.slice(), rest.slice()],
      })),
    };
  }

  /** Adds the sums of another collection, of other rows and of another thread perhaps. */
  mergeState({ rows, massVariance, sums, shared }: PooledState): void {
    this.rows += rows;
    this.#massVariance += massVariance;
    this.#sums().forEach((to, i) => addTo(to, sums[i]));
    for (const { unit, weights, outputs, sums: ofUnit } of shared) {
      const to = this.#sharedRows(unit);
      to.weights.merge(weights, new Float64Array(this.#count + 1).fill(1));
      to.outputs.merge(outputs, new Float64Array(this.#count).fill(1));
      [to.common, to.smooth, to.mass, to.rest].forEach((numbers, i) => addTo(numbers, ofUnit[i]));
    }
  }

  /** Adds another collection, of other rows. */
  merge(other: PooledProjections): void {
    const count = this.#count;
    this.rows += other.rows;
    this.#massVariance += other.#massVariance;
    const from = other.#sums();
    this.#sums().forEach((to, i) => addTo(to, from[i]));
    for (const [unit, from] of other.#shared) {
      const to = this.#sharedRows(unit);
      to.weights.merge(from.weights.view(), new Float64Array(count + 1).fill(1));
      to.outputs.merge(from.outputs.view(), new Float64Array(count).fill(1));
      addTo(to.common, from.common);
      addTo(to.smooth, from.smooth);
      addTo(to.mass, from.mass);
      addTo(to.rest, from.rest);
    }
  }

  /** Variances of an instrument's projection, rows that may err alike counted as one. */
  #allVariances(d: number): Record<(typeof causes)[number], number> {
    const all = {
      weights: this.#variances.weights[d] * this.#shareOfLargest(d),
      outputs: this.#variances.outputs[d],
      others: this.#variances.others[d],
    };
    for (const shared of this.#shared.values()) {
      const ofUnit = variancesOf(shared, 1, this.#exponential);
      for (const cause of causes) all[cause] += ofUnit[cause][d];
    }
    return all;
  }

  /**
   * The mean square of half an ulp relative to the weight, as a part of its largest, which it has at powers of
   * two only: for the offset, common to all rows, that makes it most.
   */
  #shareOfLargest(d: number): number {
    let largest = 0;
    for (let family = 0; family < weightFamilies; family++)
      largest = Math.max(largest, shareOfLargest(this.#squares, d * weightFamilies + family));
    return largest;
  }

  /**
   * A bound that each |Σ r·X| exceeds with probability at most 2·exp(−deviations²/2) where no two rows have
   * anything in common: never more than `tolerance`, and found at once.
   */
  leastTolerance(d: number, deviations: number): number {
    return this.#toleranceOf(d, deviations, 0, 0);
  }

  /**
   * The bound that |Σ r·X| of an instrument exceeds with probability at most 2·exp(−deviations²/2): see
   * docs/theory/bounds.md, "The structure".
   */
  tolerance(d: number, deviations: number): number {
    const ofWeights = this.#offset === null ? 0 : this.#commonRoundings(this.#offset, d);
    return this.#toleranceOf(d, deviations, ofWeights, shiftedRounding(this.outputs, d));
  }

  #toleranceOf(d: number, deviations: number, ofWeights: number, ofOutputs: number): number {
    const { weights, outputs, others } = this.#allVariances(d);
    let independent = this.#independent[d];
    for (const shared of this.#shared.values()) independent += shared.rest[d] ** 2;
    return (
      this.#systematic[d] +
      this.#exponential * this.#smoothWorst(d) +
      leastTolerance(
        deviations,
        [
          { known: ofWeights, variance: weights },
          { known: this.#coherent[d], variance: independent },
          { known: this.#weightsWorst[d], variance: 0 },
        ],
        [
          { known: ofOutputs, variance: outputs },
          // Rows that may err alike have their sums among the others.
          { known: this.#outputWorst[d], variance: this.#accumulated[d] },
        ],
        others,
      )
    );
  }

  /** The largest |Σ w·ε·X·(v − O)| that a smooth error ε of the exponential, at most 1, makes. */
  #smoothWorst(d: number): number {
    const perPlace = this.places / smoothPlaces;
    let worst = 0;
    for (let family = 0; family < weightFamilies; family++) {
      const set = d * weightFamilies + family;
      let sum = 0;
      for (let place = 0; place < smoothPlaces; place++) {
        let rounded = 0;
        const first = set * this.places + place * perPlace;
        for (let at = first; at < first + perPlace; at++) rounded += this.phases[at];
        sum += Math.abs(rounded - this.#own[set * smoothPlaces + place]);
      }
      worst = Math.max(worst, sum);
    }
    return worst;
  }

  /** The largest sum of roundings of P that have one offset in all rows. */
  #commonRoundings(offset: CommonOffset, d: number): number {
    const of = (family: number) => {
      const first = (d * weightFamilies + family) * offset.places;
      return this.phases.subarray(first, first + offset.places);
    };
    return Math.max(...offset.largest(of(0), of(1)), ...offset.largest(of(2), of(2)));
  }

  /**
   * The bound of the mean of the weights' errors, over the rows, where exponents are not spread evenly over
   * the octave: for a smooth error of the exponential of at most 1 and mean zero.
   */
  meanExponentialError(deviations: number): number {
    const { rows } = this;
    if (rows === 0) return 0;
    let uneven = 0;
    for (let family = 0; family < weightFamilies; family++) {
      let sum = 0;
      for (let at = family * smoothPlaces; at < (family + 1) * smoothPlaces; at++)
        sum += Math.abs(this.#mass[at] / rows - 1 / smoothPlaces);
      uneven = Math.max(uneven, sum);
    }
    let squares = this.#massVariance;
    for (const { mass } of this.#shared.values()) squares += squaresAt(mass, 0);
    return uneven + (deviations / Math.sqrt(3)) * (Math.sqrt(squares) / rows);
  }
}

/** Adds numbers to others, one by one. */
function addTo(to: Float64Array, from: Float64Array): void {
  for (let i = 0; i < to.length; i++) to[i] += from[i];
}
