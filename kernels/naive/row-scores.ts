import {
  decodeTensor,
  decodeToFloat32,
  encodeFromFloat32,
  formats,
  type FormatName,
} from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { dotFloat32, expFloat32, largestScore, softcapFloat32 } from './operations.js';
import type { RowFeatures } from '../row-features.js';

const { fround } = Math;

/** Rounds fp32 numbers to a format and back, in place, to nearest even; fp32 leaves them unchanged. */
export function rounding(format: FormatName): (values: Float32Array) => Float32Array {
  if (format === 'fp32') return (values) => values;
  return (values) => {
    decodeToFloat32(encodeFromFloat32(formats[format], values), formats[format], values);
    return values;
  };
}

/** Rows [first, first + rows) of `dim` elements of a tensor, rounded to fp32. */
export function decodedRows(
  tensor: Tensor,
  first: number,
  rows: number,
  dim: number,
): Float32Array {
  return Float32Array.from(decodeTensor(tensor, first * dim, (first + rows) * dim));
}

/** A row of the textbook kernel's final scores, [keys seen]. */
export interface RowScores {
  readonly scores: Float32Array;
  /** The scores before the softcap; null for none. */
  readonly uncapped: Float32Array | null;
}

/** Makes rows of scores, pass by pass, each rounded by `round`: products, scaled, capped, with the addend. */
export function createRowScores(
  problem: Problem,
  qkDim: number,
  round: (values: Float32Array) => Float32Array,
): (q: Float32Array, row: number, k: Float32Array, of: RowFeatures) => RowScores {
  const scale = fround(problem.scale);
  const cap = problem.softcap;
  return (q, row, k, of) => {
    const scores = Float32Array.from(of.keys, (key) =>
      dotFloat32(q, row * qkDim, k, key * qkDim, qkDim),
    );
    round(scores);
    for (let j = 0; j < scores.length; j++) scores[j] *= scale;
    round(scores);
    const uncapped = cap === null ? null : scores.slice();
    if (cap !== null) {
      const limit = fround(cap);
      for (let j = 0; j < scores.length; j++) scores[j] = softcapFloat32(scores[j], limit);
      round(scores);
    }
    if (of.addend !== null) {
      for (let j = 0; j < scores.length; j++) scores[j] += fround(of.addend[j]);
      round(scores);
    }
    return { scores, uncapped };
  };
}

/** The exponentials of scores in their place, with the largest score and the sum, both with the sink. */
export function exponentials(scores: Float32Array, sink: number): { max: number; sum: number } {
  const max = largestScore(scores, fround(sink));
  let sum = 0;
  for (let j = 0; j < scores.length; j++) {
    scores[j] = expFloat32(fround(scores[j] - max));
    sum = fround(sum + scores[j]);
  }
  return { max, sum: fround(sum + expFloat32(fround(fround(sink) - max))) };
}
