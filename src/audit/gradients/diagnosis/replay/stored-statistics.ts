import { decodeTensor } from '../../../../formats/index.js';
import { deltaFormats, storedMean } from '../../bounds/index.js';
import type { FailedGradients } from '../failed-gradients.js';

/** [batch, heads, queries] each: the natural logarithm of row sums, and D. */
export interface StoredStatistics {
  readonly logarithm: Float64Array;
  readonly delta: Float64Array;
}

/** D = dO·O of the O that was stored, written as the premises say, [batch, heads, queries]; null where none is known. */
export function storedDelta({
  forward: { out },
  measured,
  dout,
  premises,
}: FailedGradients): Float64Array | null {
  if (out === null) return null;
  const { vDim } = measured.shape;
  const [o, d] = [decodeTensor(out), decodeTensor(dout)];
  const written = deltaFormats(premises);
  const rowOf = (values: Float64Array, row: number) =>
    values.subarray(row * vDim, (row + 1) * vDim);
  return measured.mean.values.map((_, row) => storedMean(written, rowOf(d, row), rowOf(o, row)));
}

/**
 * Statistics that a backward pass reads from the stored forward, with its roundings; null where no O is known, or O is not
 * finite.
 */
export function storedStatistics(failed: FailedGradients): StoredStatistics | null {
  const { problem, forward, measured } = failed;
  const delta = storedDelta(failed);
  if (delta?.every(Number.isFinite) !== true) return null;
  const { denominator, quantities } = measured.reference;
  const isOfKeys = problem.sink?.inLse === false;
  if (forward.lse === null || isOfKeys) return { logarithm: Float64Array.from(denominator), delta };
  const stored = decodeTensor(forward.lse);
  const logarithm = Float64Array.from(denominator, (x, row) => {
    const moved = x + (stored[row] - quantities.lse.values[row]);
    return Number.isFinite(moved) ? moved : x;
  });
  return { logarithm, delta };
}
