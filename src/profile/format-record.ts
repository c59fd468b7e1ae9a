import { formats, smallestNormal, type FormatName } from '../formats/index.js';

/** What results are rounded to before their errors are measured: the format, and beyond its range. */
export interface Rounding {
  readonly format: Exclude<FormatName, 'fp64' | 'tf32'>;
  /** As `OverflowMode` of the formats: to infinity, or to the largest finite number. */
  readonly overflow: 'overflow' | 'saturate';
}

/** A format as the loops of the profiles take it; all fp64. */
export interface FormatRecord {
  readonly smallestNormal: number;
  /** 1.5·2^(53 − p): times 2^e, the number whose ulp is the format's quantum at 2^e. */
  readonly toQuantum: number;
  /** 2^(p − 1): quanta in 2^e. */
  readonly quantaPerBinade: number;
  readonly largest: number;
  /** What the magnitudes become that round beyond the largest finite number. */
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

/** The record as the WebAssembly module reads it. */
export function formatWords(record: FormatRecord): Float64Array {
  return Float64Array.of(
    record.smallestNormal,
    record.toQuantum,
    record.quantaPerBinade,
    record.largest,
    record.beyond,
  );
}
