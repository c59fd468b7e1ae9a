import { type FormatName, formats, smallestNormal } from '../formats/index.js';

/**
 * The bins of the ulp errors' histogram: bin 0 below 1/8 ulp, then two bins to an octave, [2^k,
 * 1.5·2^k) and [1.5·2^k, 2^(k + 1)), and all from 2^28 ulps on in the last.
 */
export const binCount = 64;

const firstExponent = -3;

/** The lower edge of a bin, in ulps; 0 for bin 0. */
export function binStart(bin: number): number {
  if (bin === 0) return 0;
  const octave = 2 ** (firstExponent + Math.floor((bin - 1) / 2));
  return bin % 2 === 1 ? octave : 1.5 * octave;
}

/**
 * The rounding of results before their errors are measured: the format, and the treatment of values beyond its range.
 */
export interface Rounding {
  readonly format: Exclude<FormatName, 'fp64' | 'tf32'>;
  /** The overflow behaviour, as `OverflowMode` of the formats: to infinity, or to the largest finite number. */
  readonly overflow: 'overflow' | 'saturate';
}

/** A format in the form that the loops of the profiles read; all fp64. */
export interface FormatRecord {
  readonly smallestNormal: number;
  /** 1.5·2^(53 − p): times 2^e, the number whose ulp is the format's quantum at 2^e. */
  readonly toQuantum: number;
  /** 2^(p − 1): number of quanta in 2^e. */
  readonly quantaPerBinade: number;
  readonly largest: number;
  /** The result for magnitudes that round beyond the largest finite number. */
  readonly beyond: number;
}

/** The record of a rounding to nearest, ties to even, subnormals kept. */
export function formatRecord({ format, overflow }: Rounding): FormatRecord {
  const { precision, maxFinite, specials } = formats[format];
  const infinity = specials === 'ieee' ? Infinity : NaN;
  return {
    smallestNormal: smallestNormal(formats[format]),
    toQuantum: 1.5 * 2 ** (53 - precision),
    quantaPerBinade: 2 ** (precision - 1),
    largest: maxFinite,
    beyond: overflow === 'saturate' ? maxFinite : infinity,
  };
}

/** The record in the form that the WebAssembly module reads. */
export function formatWords(record: FormatRecord): Float64Array {
  return Float64Array.of(
    record.smallestNormal,
    record.toQuantum,
    record.quantaPerBinade,
    record.largest,
    record.beyond,
  );
}

/** Names of the sums over the inputs, in this order. */
export const sumNames = [
  'scaled',
  'scaledMagnitude',
  'scaledSquare',
  'ulp',
  'ulpMagnitude',
  'ulpSquare',
] as const;
export type SumName = (typeof sumNames)[number];

/** Names of the counts that the loops keep, in this order. */
export const countNames = [
  /** Rounded results that differ from the correctly rounded reference. */
  'notCorrectlyRounded',
  /** Rounded results that differ from the baseline's. */
  'differing',
  'zeros',
  /** Subnormal results, without zeros. */
  'subnormals',
  /** Infinite and NaN results; sums and histograms leave them out. */
  'nonFinite',
  /** Those of them at which the scaled error, or the ulp error, would have been measured. */
  'nonFiniteScaled',
  'nonFiniteUlp',
] as const;
export type CountName = (typeof countNames)[number];

/** An input that has one of the largest values of a quantity. */
export interface Extreme {
  readonly value: number;
  readonly ordinal: number;
}

/** Number of extremes, and of first breaks of monotonicity, that are kept. */
export const listLength = 4;

/**
 * The findings of the loops about the results of one function rounded to one format, over some
 * consecutive inputs.
 */
export interface ErrorRecord {
  /** Sums, in the order of `sumNames`. */
  readonly sums: Float64Array;
  /** Counts, in the order of `countNames`. */
  readonly counts: Float64Array;
  /** Histogram by bin of src/profile/record.ts; inputs that are not measured or not finite count in bin 0. */
  readonly histogram: Float64Array;
  /** The largest |scaled error| and |ulp error|, the largest first, then in ascending input. */
  readonly largestScaled: readonly Extreme[];
  readonly largestUlp: readonly Extreme[];
  readonly breaks: MonotonicityBreaks;
}

/** Neighbouring inputs whose results are in the wrong order; each counts at the smaller input. */
export interface MonotonicityBreaks {
  readonly count: number;
  /** The largest breaks, by size in ulps of the exact value at the smaller input, the largest first. */
  readonly largest: readonly Extreme[];
  /** The ordinals of the first breaks, ascending. */
  readonly first: readonly number[];
}

/**
 * The layout of a record in the memory of the WebAssembly module, in bytes from its address. Sums,
 * counts, extremes (value, ordinal) and ordinals are fp64, the bins i32, one histogram for each of two
 * lanes. `extent` holds the smallest and the largest scaled error of the last call only.
 */
export const recordLayout = {
  sums: 0,
  counts: 48,
  extent: 104,
  breakCount: 120,
  largestScaled: 128,
  largestUlp: 192,
  largestBreak: 256,
  firstBreaks: 320,
  histograms: 352,
  bytes: 352 + 2 * 4 * binCount,
} as const;

function readExtremes(view: DataView, at: number): Extreme[] {
  return Array.from({ length: listLength }, (_, i) => ({
    value: view.getFloat64(at + 16 * i, true),
    ordinal: view.getFloat64(at + 16 * i + 8, true),
  })).filter(({ value }) => value > 0);
}

/** A copy of the record at an address of the module's memory. */
export function readRecord(memory: WebAssembly.Memory, address: number): ErrorRecord {
  const view = new DataView(memory.buffer, address, recordLayout.bytes);
  const numbers = (at: number, length: number): Float64Array =>
    Float64Array.from({ length }, (_, i) => view.getFloat64(at + 8 * i, true));
  const bin = (lane: number, i: number): number =>
    view.getInt32(recordLayout.histograms + 4 * (lane * binCount + i), true);
  const breakCount = view.getFloat64(recordLayout.breakCount, true);
  return {
    sums: numbers(recordLayout.sums, sumNames.length),
    counts: numbers(recordLayout.counts, countNames.length),
    histogram: Float64Array.from({ length: binCount }, (_, i) => bin(0, i) + bin(1, i)),
    largestScaled: readExtremes(view, recordLayout.largestScaled),
    largestUlp: readExtremes(view, recordLayout.largestUlp),
    breaks: {
      count: breakCount,
      largest: readExtremes(view, recordLayout.largestBreak),
      first: [...numbers(recordLayout.firstBreaks, Math.min(breakCount, listLength))],
    },
  };
}
