import quickselect from 'quickselect';
import { formats, ulp, type FormatName } from '../formats/index.js';
import { rowElements } from '../problem/index.js';
import { type ComparedValues, type Coordinates, placeOf } from './kernel-outputs.js';

/** Quantiles of |error|: 0.5, 0.9, 0.99, 0.999. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
}

/** The error of a quantity of vectors against the oracle, over the elements finite in both. */
export interface ErrorProfile {
  readonly elements: number;
  /** Elements whose output is not finite, and those where the oracle's value is not. */
  readonly nonFinite: { readonly output: number; readonly oracle: number };
  /** Errors in the output's own unit. */
  readonly absolute: {
    readonly max: number;
    readonly rms: number;
    readonly mean: number;
    readonly percentiles: Percentiles;
  };
  /** Errors in ulps of the output format, as `createUlpScale` takes them. */
  readonly ulps: { readonly max: number; readonly rms: number; readonly percentiles: Percentiles };
  /** Errors relative to Σ p|v| / Σ p. */
  readonly relative: { readonly max: number; readonly rms: number };
  /** Σ out·oracle / Σ oracle²; null when the oracle is zero throughout. */
  readonly slope: number | null;
  /** The element with the largest absolute error; null when there is none to compare. */
  readonly worst: {
    readonly at: Coordinates;
    readonly output: number;
    readonly oracle: number;
    readonly ulps: number;
  } | null;
}

/**
 * The numbers that have the given ranks, from 0, among `values` in ascending order, without sorting all of them. The values,
 * none of them NaN, are rearranged; a rank beyond them gives 0.
 */
export function numbersOfRank(values: Float64Array, ranks: readonly number[]): number[] {
  // It takes anything with numbers at indices.
  const numbers = values as unknown as number[];
  const found = new Map<number, number>();
  let right = values.length - 1;
  // From the largest on, each of them among those below the one before.
  for (const rank of [...ranks].sort((a, b) => b - a)) {
    if (rank < values.length && !found.has(rank)) {
      quickselect(numbers, rank, 0, right);
      found.set(rank, values[rank]);
      right = rank;
    }
  }
  return ranks.map((rank) => found.get(rank) ?? 0);
}

/** Quantiles (nearest rank) of numbers, which are rearranged; zeros for none. */
function percentiles(values: Float64Array): Percentiles {
  const rank = (p: number) => Math.max(0, Math.ceil(p * values.length) - 1);
  const [p50, p90, p99, p999] = numbersOfRank(values, [0.5, 0.9, 0.99, 0.999].map(rank));
  return { p50, p90, p99, p999 };
}

/** Root mean square of the finite numbers among values [from, to); 0 for none. */
function finiteRms(values: Float64Array, from: number, to: number): number {
  let largest = 0;
  let count = 0;
  for (let i = from; i < to; i++) {
    const size = Math.abs(values[i]);
    if (!(size < Infinity)) continue;
    count++;
    if (size > largest) largest = size;
  }
  if (largest === 0) return 0;
  const unit = largest > 2 ** -400 && largest < 2 ** 400 ? 1 : largest;
  let squares = 0;
  for (let i = from; i < to; i++) {
    const inUnits = values[i] / unit;
    if (Math.abs(inUnits) <= largest / unit) squares += inUnits * inUnits;
  }
  return Math.sqrt(squares / count) * unit;
}

/**
 * The size of an ulp for each element, by its index: that of the format at |exact|, or at the root mean
 * square of its row where that is larger. Near zero an ulp of the value itself is far below the resolution of
 * any sum of the row's terms. Rows of zeros take the tensor's.
 * @param exact rows of `columns` exact values
 */
export function createUlpScale(
  exact: Float64Array,
  columns: number,
  formatName: FormatName,
): (index: number) => number {
  const format = formats[formatName];
  const ofTensor = finiteRms(exact, 0, exact.length);
  const rows = columns === 0 ? 0 : exact.length / columns;
  const typical = Float64Array.from(
    { length: rows },
    (_, row) => finiteRms(exact, row * columns, (row + 1) * columns) || ofTensor,
  );
  return (index) => {
    const size = Math.max(Math.abs(exact[index]), typical[Math.floor(index / columns)]);
    return ulp(format, Math.min(size, format.maxFinite));
  };
}

/** Profiles a quantity of vectors against the oracle; its magnitude is |exact| where it has no other. */
export function profileError(compared: ComparedValues): ErrorProfile {
  const { quantity, shape, values: out } = compared;
  const { values: oracle, magnitude: magnitudes } = compared.exact;
  const columns = rowElements(quantity, shape);
  const ulpAt = createUlpScale(oracle, columns, compared.format);
  // The errors by size, in the output's unit first and in ulps then.
  const sizes = new Float64Array(out.length);
  let count = 0;
  let outputNonFinite = 0;
  let oracleNonFinite = 0;
  let sum = 0;
  let squares = 0;
  let ulpSquares = 0;
  let ulpMax = 0;
  let relativeMax = 0;
  let relativeSquares = 0;
  let cross = 0;
  let oracleSquares = 0;
  let worst = -1;
  let worstError = -1;
  for (let i = 0; i < out.length; i++) {
    const exact = oracle[i];
    const value = out[i];
    if (!Number.isFinite(exact)) oracleNonFinite++;
    if (!Number.isFinite(value)) outputNonFinite++;
    const error = value - exact;
    if (!Number.isFinite(error)) continue;
    const size = Math.abs(error);
    const inUlps = size / ulpAt(i);
    sizes[count++] = size;
    sum += error;
    squares += error * error;
    ulpSquares += inUlps * inUlps;
    if (inUlps > ulpMax) ulpMax = inUlps;
    const magnitude = magnitudes === null ? Math.abs(exact) : magnitudes[i];
    const relative = size === 0 ? 0 : size / magnitude;
    relativeMax = Math.max(relativeMax, relative);
    relativeSquares += relative * relative;
    cross += value * exact;
    oracleSquares += exact * exact;
    if (size > worstError) {
      worstError = size;
      worst = i;
    }
  }
  const counted = Math.max(count, 1);
  const absolute = percentiles(sizes.subarray(0, count));
  count = 0;
  for (let i = 0; i < out.length; i++) {
    const size = Math.abs(out[i] - oracle[i]);
    if (Number.isFinite(size)) sizes[count++] = size / ulpAt(i);
  }
  const ulps = percentiles(sizes.subarray(0, count));
  return {
    elements: out.length,
    nonFinite: { output: outputNonFinite, oracle: oracleNonFinite },
    absolute: {
      max: Math.max(worstError, 0),
      rms: Math.sqrt(squares / counted),
      mean: sum / counted,
      percentiles: absolute,
    },
    ulps: {
      max: ulpMax,
      rms: Math.sqrt(ulpSquares / counted),
      percentiles: ulps,
    },
    relative: { max: relativeMax, rms: Math.sqrt(relativeSquares / counted) },
    slope: oracleSquares === 0 ? null : cross / oracleSquares,
    worst:
      worst < 0
        ? null
        : {
            at: placeOf(quantity, shape, worst),
            output: out[worst],
            oracle: oracle[worst],
            ulps: worstError / ulpAt(worst),
          },
  };
}
