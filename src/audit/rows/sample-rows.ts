import {
  allocateStorage,
  formats,
  patternsOf,
  scalesOfRows,
  storageOf,
  type Tensor,
} from '../../formats/index.js';
import {
  problemShape,
  quantities,
  type Problem,
  type ProblemShape,
  type Quantity,
} from '../../problem/index.js';
import { rowsOfHead, type KernelOutputs } from '../kernel-outputs.js';
import { chooseRows, type RowSample, type RowSampleRequest } from './row-sample.js';

/** Rows of `dim` elements of a tensor, one behind the other, as a tensor of the shape [...leading, ...ofRow]. */
function gather(
  tensor: Tensor,
  shape: readonly number[],
  dim: number,
  rows: Int32Array | Float64Array,
): Tensor {
  const format = formats[tensor.format];
  const data = allocateStorage(format, rows.length * dim);
  const [source, target] = [patternsOf(tensor.data, format), patternsOf(data, format)];
  const words = data.length === 0 ? 0 : (target.length / data.length) * dim;
  rows.forEach((from, to) =>
    target.set(source.subarray(from * words, (from + 1) * words), to * words),
  );
  return { format: tensor.format, shape, data: storageOf(format, target) };
}

/** The rows of a sample in a tensor that has `stride` rows for each head. */
function flatRows(
  { selection: { queries } }: RowSample,
  heads: number,
  stride: number,
): Float64Array {
  const ofHead = queries.length / heads;
  return Float64Array.from(queries, (query, i) => Math.floor(i / ofHead) * stride + query);
}

/**
 * A problem of some rows of a sample.
 * @param rows ascending, as many of each head, counted over [batch, heads, queries] of the sample
 */
export function rowsProblem(
  problem: Problem,
  { batch, heads, qkDim }: ProblemShape,
  rows: Int32Array,
): Problem {
  const { q, rows: selected } = problem;
  if (selected === undefined) throw new Error('rows of a problem that is not a sample');
  const leading = [batch, heads, rows.length / (batch * heads)];
  const gathered = gather(q, [...leading, qkDim], qkDim, rows);
  const scales = scalesOfRows(q, leading, (row) => rows[row]);
  return {
    ...problem,
    q: scales === undefined ? gathered : { ...gathered, scales },
    rows: { queries: rows.map((row) => selected.queries[row]), of: selected.of },
  };
}

/** A problem of some of the rows of another; keys, values and all that is by key are shared with it. */
export function sampledProblem(
  problem: Problem,
  { batch, heads, queries, qkDim }: ProblemShape,
  sample: RowSample,
): Problem {
  const { q } = problem;
  const rows = flatRows(sample, batch * heads, queries);
  const ofHead = rows.length / (batch * heads);
  const leading = [batch, heads, ofHead];
  const gathered = gather(q, [...leading, qkDim], qkDim, rows);
  const scales = scalesOfRows(q, leading, (row) => rows[row]);
  return {
    ...problem,
    q: scales === undefined ? gathered : { ...gathered, scales },
    rows: sample.selection,
  };
}

/**
 * The rows of a sample in q, or in the tensor of a quantity, whose heads may have more of them: counted over all heads.
 * @throws RequestError when the tensor's shape does not fit the whole problem
 */
export function sampledRowNumbers(
  sample: RowSample,
  shape: ProblemShape,
  quantity?: Quantity,
  given: readonly number[] = [],
): Float64Array {
  const stride = quantity === undefined ? shape.queries : rowsOfHead(quantity, given, shape);
  return flatRows(sample, shape.batch * shape.heads, stride);
}

/**
 * The sampled rows of a quantity's tensor.
 * @throws RequestError when the tensor does not fit the whole problem
 */
export function sampledQuantity(
  quantity: Quantity,
  tensor: Tensor,
  shape: ProblemShape,
  sample: RowSample,
): Tensor {
  const heads = shape.batch * shape.heads;
  const rows = flatRows(sample, heads, rowsOfHead(quantity, tensor.shape, shape));
  const dim = quantity.row === 'vector' ? shape[quantity.axes[3] ?? 'vDim'] : 1;
  const leading = [shape.batch, shape.heads, rows.length / heads];
  return gather(tensor, quantity.row === 'vector' ? [...leading, dim] : leading, dim, rows);
}

/** A sample of a problem's rows, with the kernel's outputs for them. */
export interface SampledRows {
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  readonly sample: RowSample;
}

/**
 * Takes a sample of a problem's rows and of the kernel's outputs for all of them: to be judged in their
 * place.
 * @param known all quantities
 * @returns null where the sample would be all rows
 * @throws RequestError as `chooseRows`, and for tensors that do not fit the problem
 */
export function sampleRows(
  problem: Problem,
  outputs: KernelOutputs,
  request: RowSampleRequest,
  known: readonly Quantity[] = quantities,
): SampledRows | null {
  const shape = problemShape(problem);
  const sample = chooseRows(problem, shape, request);
  if (sample === null) return null;
  const tensors: Readonly<Partial<Record<string, Tensor | null>>> = { ...outputs };
  const sampled = known.flatMap((quantity) => {
    const tensor = tensors[quantity.name];
    return tensor ? [[quantity.name, sampledQuantity(quantity, tensor, shape, sample)]] : [];
  });
  return {
    problem: sampledProblem(problem, shape, sample),
    outputs: { lse: null, ...(Object.fromEntries(sampled) as { out: Tensor }) },
    sample,
  };
}
