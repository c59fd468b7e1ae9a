import { levels, type AttentionReference, type ReferenceQuantity } from '../../oracles/index.js';
import { decodeToFloat64, type FormatName, formats } from '../formats/index.js';
import {
  type ProblemShape,
  quantities,
  type Quantity,
  type QuantityName,
  quantityShape,
  rowElements,
  type Tensor,
} from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** Outputs of a kernel for a problem, by quantity; null, or left out, for those that it does not give. */
export type KernelOutputs = {
  /** [batch, heads, seqlen_q, v dim], or rank 3 for a batch of one. */
  readonly out: Tensor;
  /** [batch, heads, seqlen_q]; see `auditableLse` for the shapes taken. */
  readonly lse: Tensor | null;
} & { readonly [Name in Exclude<QuantityName, 'out' | 'lse'>]?: Tensor | null };

/** A quantity that a kernel gave, decoded. */
export interface GivenQuantity {
  readonly quantity: Quantity;
  /** The format of the tensor that it was stored in. */
  readonly format: FormatName;
  /** The values in the quantity's canonical shape. */
  readonly values: Float64Array;
}

/** Outputs of a kernel, decoded, by quantity. */
export interface GivenOutputs {
  readonly out: GivenQuantity;
  readonly lse: GivenQuantity | null;
  readonly [name: string]: GivenQuantity | null | undefined;
}

/** A given quantity beside its exact value, from whatever computation. */
export interface ComparedValues extends GivenQuantity {
  readonly exact: Pick<ReferenceQuantity, 'values' | 'magnitude'>;
  readonly shape: ProblemShape;
  /** Whether the inputs of a row hold infinities or NaNs, so that it has a worst case only. */
  readonly isSpecialRow: (row: number) => boolean;
  /** Whether a correct kernel may give NaN for a row whose exact result is not NaN. */
  readonly mayBeNaN: (row: number) => boolean;
}

/** A given quantity of the forward pass beside its exact value. */
export interface ComparedQuantity extends ComparedValues {
  readonly exact: ReferenceQuantity;
  readonly reference: AttentionReference;
}

function decode(tensor: Tensor): Float64Array {
  const values = new Float64Array(tensor.data.length);
  decodeToFloat64(tensor.data, formats[tensor.format], values);
  return values;
}

/**
 * The number of rows of a head in a tensor of vectors: that of the problem. Vectors are [batch, heads, rows,
 * elements], or rank 3 for a batch of one.
 * @throws RequestError when the tensor has another shape
 */
function vectorStride(quantity: Quantity, given: readonly number[], shape: ProblemShape): number {
  const wanted = quantityShape(quantity, shape);
  const got = given.length === 3 ? [1, ...given] : given;
  if (got.length !== wanted.length || got.some((size, i) => size !== wanted[i]))
    throw new RequestError(
      `${quantity.prose} has shape [${given.join(', ')}] but the problem asks for [${wanted.join(', ')}]; pass the matching tensor, or --layout bshd`,
    );
  return wanted[2];
}

/**
 * The number of rows of a head in a tensor of numbers. Kernels write them as [batch, heads, rows], without the
 * batch when that is one, with batch and heads merged, with a trailing dimension of one (cuDNN), or with rows
 * padded beyond their number (CUTLASS pads to 32), whose padding does not count.
 * @throws RequestError for any other shape
 */
function numberStride(quantity: Quantity, given: readonly number[], shape: ProblemShape): number {
  const [batch, heads, rows] = quantityShape(quantity, shape);
  const dims = [...given];
  if (dims.length > 1 && dims.at(-1) === 1 && dims.at(-2)! >= rows && rows !== 1) dims.pop();
  if (dims.length === 4 && dims.at(-1) === 1) dims.pop();
  const stride = dims.at(-1) ?? 0;
  const outer = dims.slice(0, -1);
  const leading = outer.reduce((a, b) => a * b, 1);
  const fits =
    outer.length === 2
      ? outer[0] === batch && outer[1] === heads
      : outer.length === 1 && leading === batch * heads;
  if (!fits || stride < rows) {
    const got = given.length === 2 ? [1, ...given] : given;
    const isTurned = String(got) === String([batch, rows, heads]);
    const mend = isTurned ? ', or turn [batch, seqlen, heads] into [batch, heads, seqlen]' : '';
    throw new RequestError(
      `${quantity.prose} has shape [${given.join(', ')}] but the problem asks for [${batch}, ${heads}, ${rows}]; pass the matching tensor${mend}`,
    );
  }
  return stride;
}

/**
 * The number of rows that a tensor of a quantity holds for each head; the problem's rows are the first of
 * them.
 * @param given the tensor's shape
 * @throws RequestError when that is not one that the quantity may have
 */
export function rowsOfHead(
  quantity: Quantity,
  given: readonly number[],
  shape: ProblemShape,
): number {
  return quantity.row === 'vector'
    ? vectorStride(quantity, given, shape)
    : numberStride(quantity, given, shape);
}

function decodeVectors(quantity: Quantity, tensor: Tensor, shape: ProblemShape): Float64Array {
  vectorStride(quantity, tensor.shape, shape);
  return decode(tensor);
}

function decodeNumbers(quantity: Quantity, tensor: Tensor, shape: ProblemShape): Float64Array {
  const stride = numberStride(quantity, tensor.shape, shape);
  const [batch, heads, rows] = quantityShape(quantity, shape);
  const values = decode(tensor);
  const aligned = new Float64Array(batch * heads * rows);
  for (let head = 0; head < batch * heads; head++)
    aligned.set(values.subarray(head * stride, head * stride + rows), head * rows);
  return aligned;
}

/**
 * A tensor of a quantity, decoded into its canonical shape.
 * @throws RequestError when the tensor's shape is not one that the quantity may have
 */
export function decodeQuantity(
  quantity: Quantity,
  tensor: Tensor,
  shape: ProblemShape,
): GivenQuantity {
  const values =
    quantity.row === 'vector'
      ? decodeVectors(quantity, tensor, shape)
      : decodeNumbers(quantity, tensor, shape);
  return { quantity, format: tensor.format, values };
}

/**
 * All outputs of a kernel, decoded.
 * @param known the quantities that are asked for; all others are left out
 * @throws RequestError when a tensor does not fit the problem, and for quantities without the output
 */
export function decodeOutputs(
  outputs: KernelOutputs,
  shape: ProblemShape,
  known: readonly Quantity[] = quantities,
): GivenOutputs {
  if (!known.some(({ name }) => name === output.name))
    throw new RequestError(
      `the quantities to judge are ${known.length === 0 ? 'none' : known.map(({ name }) => name).join(', ')}; give ${output.name} among them, which every audit judges`,
    );
  const tensors: Readonly<Partial<Record<string, Tensor | null>>> = { ...outputs };
  const given = known.map((quantity) => {
    const tensor = tensors[quantity.name];
    return [quantity.name, tensor ? decodeQuantity(quantity, tensor, shape) : null] as const;
  });
  return Object.fromEntries(given) as unknown as GivenOutputs;
}

const [output, logSumExp] = quantities;

/**
 * The output's values, [batch, heads, seqlen_q, v dim].
 * @throws RequestError when the tensor has another shape
 */
export function auditableOutput(out: Tensor, shape: ProblemShape): Float64Array {
  return decodeVectors(output, out, shape);
}

/**
 * The LSE as [batch, heads, seqlen_q], decoded. Kernels write it as [batch, heads, seqlen_q], without
 * the batch when that is one, with batch and heads merged, with a trailing dimension of one (cuDNN),
 * or with rows padded beyond seqlen_q (CUTLASS pads to 32), whose padding is dropped.
 * @throws RequestError for any other shape.
 */
export function auditableLse(lse: Tensor, shape: ProblemShape): Float64Array {
  return decodeNumbers(logSumExp, lse, shape);
}

/**
 * A given quantity beside its exact value.
 * @throws RequestError when the reference does not have it
 */
export function compareQuantity(
  reference: AttentionReference,
  given: GivenQuantity,
): ComparedQuantity {
  const exact = reference.quantities[given.quantity.name];
  if (exact === undefined)
    throw new RequestError(`nothing is known of what ${given.quantity.prose} is exactly`);
  const { shape, level } = reference;
  return {
    ...given,
    exact,
    reference,
    shape,
    isSpecialRow: (row) => levels[level[row]] === 'special',
    mayBeNaN: (row) => isUndefinedRow(reference, row),
  };
}

/**
 * Whether a row sees keys, but only such with a score of −∞. It has no weights, like a row without keys; a
 * kernel that subtracts the maximum gets −∞ − (−∞), NaN, and may do so.
 * @param row counted over [batch, heads, queries]
 */
export function isUndefinedRow({ level, quantities }: AttentionReference, row: number): boolean {
  return levels[level[row]] === 'special' && quantities.lse.values[row] === -Infinity;
}

/** The place of an element: batch, head, query or key, and column where there is one. */
export interface Coordinates {
  readonly batch: number;
  readonly head: number;
  /** The query, for quantities that have a row for every query, that is all but gradients of keys and values. */
  readonly query?: number;
  /** The key, for quantities that have a row for every key, whose `head` is one of the keys'; and for the gradient of a bias. */
  readonly key?: number;
  /** The token, of a recurrence's outputs and gradients, or the row of its state. */
  readonly token?: number;
  readonly row?: number;
  readonly column?: number;
  /** For packed sequences the number of the row's own, within which `query` counts. */
  readonly sequence?: number;
}

function headAt(heads: number, rows: number, index: number): Pick<Coordinates, 'batch' | 'head'> {
  const head = Math.floor(index / rows);
  return { batch: Math.floor(head / heads), head: head % heads };
}

/** Coordinates of flat element `index` in [batch, heads, queries, columns]. */
export function elementAt(
  shape: ProblemShape,
  index: number,
): Coordinates & { readonly query: number; readonly column: number } {
  const { heads, queries, vDim } = shape;
  const row = Math.floor(index / vDim);
  return { ...headAt(heads, queries, row), query: row % queries, column: index % vDim };
}

/** Coordinates of flat element `index` of a quantity; a number of a row has no column. */
export function placeOf(quantity: Quantity, shape: ProblemShape, index: number): Coordinates {
  const [, heads, rows] = quantity.axes;
  const columns = rowElements(quantity, shape);
  const row = Math.floor(index / columns);
  const number = row % shape[rows];
  const at = {
    ...headAt(shape[heads], shape[rows], row),
    [quantity.rowWord ?? (rows === 'keys' ? 'key' : 'query')]: number,
  };
  return quantity.row === 'vector' ? { ...at, column: index % columns } : at;
}

/** "head 3, query 17, column 5", with the batch or the sequence when there is more than one. */
export function describePlace(at: Coordinates): string {
  const { batch, sequence, head, query, key, token, row, column } = at;
  const words = [
    batch === 0 ? '' : `batch ${batch}`,
    sequence === undefined ? '' : `sequence ${sequence}`,
    `head ${head}`,
    query === undefined ? '' : `query ${query}`,
    key === undefined ? '' : `key ${key}`,
    token === undefined ? '' : `token ${token}`,
    row === undefined ? '' : `row ${row}`,
    column === undefined ? '' : `column ${column}`,
  ];
  return words.filter((word) => word !== '').join(', ');
}
