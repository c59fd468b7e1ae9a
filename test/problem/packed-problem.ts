import { allocateStorage, formats, patternsOf, type FormatName } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { sequencesOf } from '../setup/problems.js';

/** A tensor whose bit patterns are 1, 2, …, of 8 bits at most, anew after `period` elements; none is a NaN. */
export function patternTensor(shape: readonly number[], format: FormatName, period = 100): Tensor {
  const data = allocateStorage(
    formats[format],
    shape.reduce((a, b) => a * b, 1),
  );
  const patterns = patternsOf(data, formats[format]);
  patterns.forEach((_, i) => (patterns[i] = 1 + (i % period)));
  return { format, shape, data };
}

/** A problem of packed sequences, of which each has [queries, keys]; all elements are finite. */
export function packedProblem(
  sizes: readonly (readonly [queries: number, keys: number])[],
  format: FormatName,
): Problem {
  const total = (side: 0 | 1) => sizes.reduce((sum, one) => sum + one[side], 0);
  return {
    q: patternTensor([1, 2, total(0), 2], format),
    k: patternTensor([1, 1, total(1), 2], format),
    v: patternTensor([1, 1, total(1), 2], format),
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
    sequences: sequencesOf(sizes),
  };
}
