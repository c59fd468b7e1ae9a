import { internalBound, outputRounding } from '../bounds/index.js';
import type { DiagnosisInput } from './diagnosis-input.js';
import type { RowPrediction } from './prediction.js';

/**
 * What a correct kernel gives for a row: the exact output and, per column, how far rounding can take
 * it from there (Σ w|v − O| taken for its upper bound Σ w|v| + |O|).
 * Nothing on a row without keys.
 */
export function correctRow(
  {
    reference,
    bound,
    outputs: {
      out: { format: outputFormat },
    },
  }: DiagnosisInput,
  row: number,
): Pick<RowPrediction, 'out' | 'limit'> {
  const { vDim } = reference.shape;
  const rowBound = bound.row(row);
  const out = reference.quantities.out.values.slice(row * vDim, (row + 1) * vDim);
  const limit = out.map((exact, c) => {
    if (rowBound.keys === 0) return 0;
    const magnitude = reference.quantities.out.magnitude[row * vDim + c];
    const internal = internalBound(rowBound, exact, magnitude, magnitude + Math.abs(exact));
    return internal + outputRounding(outputFormat, exact, internal);
  });
  return { out, limit };
}
