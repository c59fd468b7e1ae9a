import {
  decodeFinite,
  decodeMeasured,
  formats,
  multiplyByScales,
  smallestNormal,
  type RowMeasures,
} from '../../formats/index.js';
import type { Problem, ProblemShape, Tensor } from '../../problem/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { createKeyExtents, euclideanNorm, type KeyExtents } from './key-extents.js';
import type { WorkingMemories } from '../../reuse.js';
import { tileRows } from './memory.js';
import { scoreError, scoreUnits } from './scores.js';

/** Some rows of Q, K or V of one head, decoded, infinities and NaNs as 0. */
export interface DecodedRows {
  /** Counted within the head. */
  readonly first: number;
  /** [rows × dim] */
  readonly values: Float64Array;
  /** Their least and largest magnitudes. */
  readonly least: number;
  readonly largest: number;
  /** Units that the errors of scores are relative to: see `scoreUnits`; empty for V. */
  readonly units: Float64Array;
}

/** The rows of one head of a tensor, up to 64 of which are decoded at a time. */
export interface OperandRows {
  /** The rows with a row, from a multiple of 64 on: good until rows of four other tiles are asked for. */
  readonly with: (row: number) => DecodedRows;
}

/** Keys and values of so many elements are remembered for other queries: 16 MiB in fp64. */
const mostRemembered = 2 ** 21;

/** Elements of a head, and units of its rows, that are kept once they are there: 16 MB of them each. */
const mostKept = 2 ** 21;

/** Decoded rows beyond those that are kept: tiles that are not aligned, in any order, need two. */
const mostRecent = 4;

/** Rows as they are decoded, with their measures where these are known. */
interface MeasuredValues {
  readonly values: Float64Array;
  readonly measures: RowMeasures | null;
}

/** The least and the largest magnitude. */
function extremesOf({ values, measures }: MeasuredValues): {
  readonly least: number;
  readonly largest: number;
} {
  let [least, largest] = [Infinity, 0];
  if (measures !== null) {
    for (let i = 0; i < measures.least.length; i++) {
      if (measures.least[i] < least) least = measures.least[i];
      if (measures.largest[i] > largest) largest = measures.largest[i];
    }
    return { least, largest };
  }
  for (const x of values) {
    const size = Math.abs(x);
    if (size < least) least = size;
    if (size > largest) largest = size;
  }
  return { least, largest };
}

/** Decodes rows of a tensor, infinities and NaNs as 0, into `room` or a new array. */
function decodeRows(
  tensor: Tensor,
  first: number,
  rows: number,
  dim: number,
  room: Float64Array | undefined,
): MeasuredValues {
  const values = room ?? new Float64Array(rows * dim);
  const [begin, end] = [first * dim, (first + rows) * dim];
  const measures = decodeMeasured(tensor, begin, end, dim, values);
  if (measures === null) decodeFinite(tensor, begin, end, values);
  return { values, measures };
}

/** Units of rows, the first of which is row `first` of the tensor. */
type UnitsOf = (measured: MeasuredValues, rows: number, first: number) => Float64Array;

/** @param first the head's first row in the tensor */
function operandRows(
  tensor: Tensor,
  first: number,
  rows: number,
  dim: number,
  unitsOf: UnitsOf,
): OperandRows {
  const kept = new Map<number, DecodedRows>();
  const recent: DecodedRows[] = [];
  // Units are far fewer than elements, except where partial sums are of one product.
  const keptUnits = new Map<number, Float64Array>();
  let numbers = 0;
  let units = 0;
  let last: DecodedRows | null = null;
  const unitsOfTile = (tile: number, measured: MeasuredValues, count: number, begin: number) => {
    const known = keptUnits.get(tile) ?? unitsOf(measured, count, begin);
    if (!keptUnits.has(tile) && units + known.length <= mostKept) {
      units += known.length;
      keptUnits.set(tile, known);
    }
    return known;
  };
  const decode = (tile: number): DecodedRows => {
    const known = kept.get(tile) ?? recent.find((one) => one.first === tile * tileRows);
    if (known !== undefined) return known;
    const count = Math.min(tileRows, rows - tile * tileRows);
    const begin = first + tile * tileRows;
    // The rows that were used longest ago make room.
    const isKept = numbers + count * dim <= mostKept;
    const room = isKept || recent.length < mostRecent ? undefined : recent.pop()?.values;
    const isRoom = room?.length === count * dim;
    const measured = decodeRows(tensor, begin, count, dim, isRoom ? room : undefined);
    const { values } = measured;
    const decoded = {
      first: tile * tileRows,
      values,
      ...extremesOf(measured),
      units: unitsOfTile(tile, measured, count, begin),
    };
    if (isKept) {
      numbers += values.length;
      kept.set(tile, decoded);
    } else recent.unshift(decoded);
    return decoded;
  };
  return {
    with: (row) => {
      if (last === null || row < last.first || row >= last.first + tileRows)
        last = decode(Math.floor(row / tileRows));
      return last;
    },
  };
}

/** The operands of one query head. */
export interface HeadOperands {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly query: OperandRows;
  readonly key: OperandRows;
  readonly value: OperandRows;
  /** Magnitudes of its keys and values. */
  readonly extents: KeyExtents;
}

/** The norm of a query: see `euclideanNorm`. */
export function queryNorm({ query }: HeadOperands, row: number, dim: number): number {
  const { first, values } = query.with(row);
  return euclideanNorm(values, (row - first) * dim, (row - first + 1) * dim);
}

/**
 * The operands head by head. Rows are decoded as they are asked for; those of K and V that are kept serve all query
 * heads that share them. At most 32 MB a tensor, whatever the lengths.
 */
export function* headOperands(
  problem: Problem,
  shape: ProblemShape,
  arithmetic: KernelArithmetic,
  memories?: WorkingMemories,
): Generator<HeadOperands> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const { scores } = arithmetic;
  const error = scoreError(scores, qkDim);
  const unitsOf = (tensor: Tensor) => {
    const least = smallestNormal(formats[tensor.format]);
    const rounded = scores.kind === 'any-order' ? scores.smallestOperand : 0;
    const smallest = Math.max(least, rounded);
    return (measured: MeasuredValues, rows: number, first: number) => {
      const ofRows = { ...measured, rows, dim: qkDim };
      if (tensor.scales === undefined) return scoreUnits(error, ofRows, smallest);
      const { values } = measured;
      // Each element's own: blocks may differ by orders of magnitude.
      const floors = new Float64Array(values.length).fill(least);
      const begin = first * qkDim;
      multiplyByScales(tensor, floors, begin, begin + values.length);
      for (let i = 0; i < floors.length; i++) floors[i] = Math.max(floors[i], rounded);
      return scoreUnits(error, ofRows, floors);
    };
  };
  const none = new Float64Array(0);
  const extentsOf = createKeyExtents(problem, shape, memories);
  const ofHead = ({ data }: Tensor, kv: number, dim: number) =>
    data.subarray(kv * keys * dim, (kv + 1) * keys * dim);
  const isRemembered =
    keys * (qkDim + vDim) <= mostRemembered &&
    problem.k.scales === undefined &&
    problem.v.scales === undefined;
  const kind = `bounds ${problem.k.format} ${problem.v.format} ${keys} ${qkDim} ${vDim}`;
  let knownHead = -1;
  let shared: Pick<HeadOperands, 'key' | 'value' | 'extents'> | undefined;
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    if (kv !== knownHead || shared === undefined) {
      knownHead = kv;
      const make = () => ({
        scores,
        key: operandRows(problem.k, kv * keys, keys, qkDim, unitsOf(problem.k)),
        value: operandRows(problem.v, kv * keys, keys, vDim, () => none),
      });
      const data = [ofHead(problem.k, kv, qkDim), ofHead(problem.v, kv, vDim)];
      const known = isRemembered ? (memories?.remember(kind, data, make) ?? make()) : make();
      // Units are those of one arithmetic.
      shared = { ...(known.scores === scores ? known : make()), extents: extentsOf(kv) };
    }
    const query = operandRows(problem.q, head * queries, queries, qkDim, unitsOf(problem.q));
    yield { head, query, ...shared };
  }
}
