import {
  binCount,
  binStart,
  type CountName,
  countNames,
  type ErrorRecord,
  type Extreme,
  type FormatRecord,
  listLength,
  type SumName,
  sumNames,
} from '../../src/profile/record.js';

import type { ResultClasses } from '../../src/profile/result-classes.js';
import { binadeOf, roundTo } from '../../src/profile/input-view.js';

/**
 * The definition of the WebAssembly loops of src/profile/assembly/accumulate.ts, equal to the last bit: even and odd
 * indices are summed apart and added at the end.
 */

/** A record being filled. */
interface GrowingRecord extends ErrorRecord {
  readonly largestScaled: Extreme[];
  readonly largestUlp: Extreme[];
  readonly breaks: { count: number; largest: Extreme[]; first: number[] };
}

/** The bin of a non-negative ulp error. */
export function binOf(ulps: number): number {
  let bin = binCount - 1;
  while (ulps < binStart(bin)) bin--;
  return bin;
}

/** An empty record. */
export function emptyRecord(): GrowingRecord {
  return {
    sums: new Float64Array(sumNames.length),
    counts: new Float64Array(countNames.length),
    histogram: new Float64Array(binCount),
    largestScaled: [],
    largestUlp: [],
    breaks: { count: 0, largest: [], first: [] },
  };
}

/** Scales of the errors, and rounded references, at some inputs. */
interface Scales {
  /** Factors of the difference from the reference; 0 where an error is not measured. */
  readonly scale: Float64Array;
  readonly ulps: Float64Array;
  /** The references correctly rounded, where they are not undecided. */
  readonly rounded: Float64Array;
  /** Indices of the references too near a midpoint for the margin. */
  readonly undecided: readonly number[];
  readonly scaledCount: number;
  readonly ulpCount: number;
}

/**
 * The scales for errors against fp64 references. The ulp error is measured up to the format's largest
 * number, in ulps of the format at the reference; the scaled error is the absolute error there or
 * else the relative one, which is measured for references that are normal numbers of the format.
 * @param margin a bound on the references' relative error; 0 for exact ones, which may be infinite
 */
export function scalesFor(
  references: Float64Array,
  format: FormatRecord,
  absolute: boolean,
  margin: number,
): Scales {
  const inRange = (t: number): boolean => Math.abs(t) <= format.largest;
  const isScaled = (t: number): boolean =>
    inRange(t) && (absolute || Math.abs(t) >= format.smallestNormal);
  const scale = references.map((t) => (isScaled(t) ? (absolute ? 1 : 1 / t) : 0));
  const ulps = references.map((t) =>
    inRange(t) ? (1 / binadeOf(t, format.smallestNormal)) * format.quantaPerBinade : 0,
  );
  const radius = (t: number): number => (margin === 0 ? 0 : t * margin);
  const low = references.map((t) => roundTo(format, t - radius(t), t));
  const high = references.map((t) => roundTo(format, t + radius(t), t));
  return {
    scale,
    ulps,
    rounded: low,
    undecided: [...low.keys()].filter((i) => low[i] !== high[i]),
    scaledCount: references.filter(isScaled).length,
    ulpCount: references.filter(inRange).length,
  };
}

/** Inserts an extreme after those that are not smaller, in a list of at most `listLength`; ordinals must ascend. */
function insert(list: Extreme[], extreme: Extreme): void {
  const place = list.findIndex(({ value }) => value < extreme.value);
  list.splice(place < 0 ? list.length : place, 0, extreme);
  if (list.length > listLength) list.pop();
}

/** The rounded results of some consecutive inputs, and their references. */
interface Measured {
  readonly rounded: Float64Array;
  readonly references: Float64Array;
  readonly baseline: Float64Array;
  readonly scales: Scales;
  /** Number of times that each result counts: 1, or for a single result any number of equal ones. */
  readonly repeat: number;
  /** The ordinal of the first input. */
  readonly ordinal: number;
  readonly smallestNormal: number;
}

/** Adds errors to a record; returns the smallest and the largest measured scaled error. */
export function accumulate(
  record: GrowingRecord,
  measured: Measured,
): readonly [least: number, most: number] {
  const { rounded, references, baseline, scales, repeat, ordinal, smallestNormal } = measured;
  const lanes = [new Float64Array(sumNames.length), new Float64Array(sumNames.length)];
  let [least, most] = [Infinity, -Infinity];
  const count = (name: CountName, holds: boolean): void => {
    if (holds) record.counts[countNames.indexOf(name)] += repeat;
  };
  rounded.forEach((z, i) => {
    const isFinite = Number.isFinite(z);
    const difference = isFinite && scales.ulps[i] !== 0 ? z - references[i] : 0;
    const scaled = difference * scales.scale[i];
    const ulp = difference * scales.ulps[i];
    const [scaledMagnitude, ulpMagnitude] = [Math.abs(scaled), Math.abs(ulp)];
    const terms: Record<SumName, number> = {
      scaled,
      scaledMagnitude,
      scaledSquare: scaled * scaled,
      ulp,
      ulpMagnitude,
      ulpSquare: ulp * ulp,
    };
    sumNames.forEach((name, s) => (lanes[i % 2][s] += terms[name]));
    if (scales.scale[i] !== 0 && isFinite)
      [least, most] = [Math.min(least, scaled), Math.max(most, scaled)];
    for (let copy = 0; copy < Math.min(repeat, listLength); copy++) {
      const at = ordinal + i + copy;
      if (scaled !== 0) insert(record.largestScaled, { value: scaledMagnitude, ordinal: at });
      if (ulp !== 0) insert(record.largestUlp, { value: ulpMagnitude, ordinal: at });
    }
    record.histogram[binOf(ulpMagnitude)] += repeat;
    count('notCorrectlyRounded', z !== scales.rounded[i]);
    count('differing', z !== baseline[i]);
    count('zeros', z === 0);
    count('subnormals', z !== 0 && Math.abs(z) < smallestNormal);
    count('nonFinite', !isFinite);
    count('nonFiniteScaled', !isFinite && scales.scale[i] !== 0);
    count('nonFiniteUlp', !isFinite && scales.ulps[i] !== 0);
  });
  for (const s of sumNames.keys()) record.sums[s] += (lanes[0][s] + lanes[1][s]) * repeat;
  return [least, most];
}

/** Rounded results at some inputs and at their successors, and the ulps there. */
interface ResultPairs {
  readonly left: Float64Array;
  readonly right: Float64Array;
  readonly ulps: Float64Array;
}

/**
 * Adds to a record the breaks of monotonicity between left[i] and right[i + 1], for each i of `ulps`:
 * a break is where the first is the larger, or with `increasing` false the smaller.
 */
export function countBreaks(
  record: GrowingRecord,
  { left, right, ulps }: ResultPairs,
  increasing: boolean,
  ordinal: number,
): void {
  const { breaks } = record;
  ulps.forEach((perUnit, i) => {
    const drop = increasing ? left[i] - right[i + 1] : right[i + 1] - left[i];
    if (!(drop > 0)) return;
    breaks.count++;
    if (breaks.first.length < listLength) breaks.first.push(ordinal + i);
    if (perUnit > 0) insert(breaks.largest, { value: drop * perUnit, ordinal: ordinal + i });
  });
}

const [largestInt32, smallestInt32] = [2 ** 31 - 1, -(2 ** 31)];

/** The classes of fp32 results, given as bit patterns. */
export function classify(results: Uint32Array): ResultClasses {
  const magnitudes = results.map((bits) => bits & 0x7fffffff);
  const orders = [...results]
    .filter((_, i) => magnitudes[i] <= 0x7f800000)
    .map((bits) => (bits >= 2 ** 31 ? 2 ** 31 - 1 - bits : bits));
  return {
    zeros: magnitudes.filter((m) => m === 0).length,
    subnormals: magnitudes.filter((m) => m > 0 && m < 0x00800000).length,
    infinities: magnitudes.filter((m) => m === 0x7f800000).length,
    nans: magnitudes.filter((m) => m > 0x7f800000).length,
    least: orders.reduce((least, order) => Math.min(least, order), largestInt32),
    most: orders.reduce((most, order) => Math.max(most, order), smallestInt32),
  };
}
