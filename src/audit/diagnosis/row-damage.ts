import {
  forEachWeightTile,
  type AttentionReference,
  type WeightVisitor,
} from '../../../oracles/index.js';
import { decodeMeasured, decodeTensor, type FormatName, type Tensor } from '../../formats/index.js';
import { outputRounding, type RowBound } from '../bounds/index.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import type { DiagnosisInput } from './diagnosis.js';

/** The data that rows are measured from. */
interface RowMeasureInput extends Pick<
  DiagnosisInput,
  'problem' | 'reference' | 'bound' | 'memories'
> {
  readonly outputs: Pick<GivenOutputs, 'out'>;
}

/** Every row's error beside the error that rounding is expected to make there. */
export interface RowDamage {
  /** Σ (out − exact)² over the columns; +∞ where one of them is not finite. */
  readonly error: Float64Array;
  /** Expected Σ of squared rounding errors over the columns. */
  readonly noise: Float64Array;
}

/**
 * Expected Σ over the columns of a correct row's squared error: P's roundings and the weights' own
 * errors as independent and uniform within their bounds (Σ w²‖v‖² = `squares`), the sums as random
 * walks of their additions, the output uniform within half an ulp. 0 for a row without keys.
 */
export function expectedError(
  bound: RowBound,
  squares: number,
  out: Float64Array,
  magnitude: Float64Array,
  outputFormat: FormatName,
): number {
  const { weightRounding, typicalWeight, addition, normalisation, floor, keys, tileRounding } =
    bound;
  if (keys === 0) return 0;
  const walk = Math.sqrt(Math.max(keys, 1)) * addition;
  const divide = Math.max(normalisation - keys * addition, 0) + walk;
  const underflow = floor / Math.sqrt(Math.max(keys, 1));
  // Four sums of 16, 32, 48 and 64 products: (1 + 2 + 3 + 4) / 4 of the squares, if their signs are random.
  let sum = (weightRounding ** 2 + typicalWeight ** 2 + 2.5 * tileRounding ** 2) * squares;
  for (let c = 0; c < out.length; c++) {
    const half = outputRounding(outputFormat, out[c], 0);
    sum += half ** 2 + (walk * magnitude[c]) ** 2 + (divide * out[c]) ** 2 + underflow ** 2;
  }
  return sum / 3;
}

/** Rows that are decoded at a time. */
const decodedRows = 64;

/** Σ x² of each row of a tensor, [… × dim]. */
function squaredNorms(tensor: Tensor, dim: number): Float64Array {
  const rows = dim === 0 ? 0 : tensor.data.length / dim;
  const norms = new Float64Array(rows);
  const values = new Float64Array(Math.min(decodedRows, rows) * dim);
  for (let first = 0; first < rows; first += decodedRows) {
    const end = Math.min(first + decodedRows, rows);
    const measures = decodeMeasured(tensor, first * dim, end * dim, dim, values);
    if (measures !== null) {
      norms.set(measures.squares, first);
      continue;
    }
    decodeTensor(tensor, first * dim, end * dim, values);
    for (let row = first, at = 0; row < end; row++)
      for (let c = 0; c < dim; c++, at++) norms[row] += values[at] ** 2;
  }
  return norms;
}

/** Σ_j w_j²‖v_j‖² of every row, with the weights that dropout applies, in one walk over the weights. */
function weightSquares(input: RowMeasureInput, reference: AttentionReference): Float64Array {
  const { problem, memories } = input;
  const { shape } = reference;
  const { heads, kvHeads, groupSize, queries, keys, vDim } = shape;
  const norms = squaredNorms(problem.v, vDim);
  const squares = new Float64Array(reference.quantities.lse.values.length);
  let row = 0;
  let firstNorm = 0;
  const visitor: WeightVisitor = {
    begin: (head, firstRow) => {
      row = head * queries + firstRow;
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      firstNorm = kv * keys;
    },
    visit: ({ applied, rows, firstKey, keys: count, stride }) => {
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < count; j++)
          squares[row + i] += applied[i * stride + j] ** 2 * norms[firstNorm + firstKey + j];
    },
    end: () => undefined,
  };
  forEachWeightTile(problem, reference, visitor, { memories });
  return squares;
}

/** Measures every row of a failed output; one walk over the weights, memory O(rows). */
export function measureRows(input: RowMeasureInput): RowDamage {
  const {
    reference,
    bound,
    outputs: {
      out: { values: out, format: outputFormat },
    },
  } = input;
  const { vDim } = reference.shape;
  const squares = weightSquares(input, reference);
  const error = new Float64Array(squares.length);
  const noise = squares.map((square, row) => {
    const from = row * vDim;
    const exact = reference.quantities.out.values.subarray(from, from + vDim);
    let sum = 0;
    // A NaN or infinity that the exact row has too is no error of the kernel's.
    for (let c = 0; c < vDim; c++)
      if (Number.isFinite(exact[c])) sum += (out[from + c] - exact[c]) ** 2;
    error[row] = Number.isNaN(sum) ? Infinity : sum;
    const magnitude = reference.quantities.out.magnitude.subarray(from, from + vDim);
    return expectedError(bound.row(row), square, exact, magnitude, outputFormat);
  });
  return { error, noise };
}
