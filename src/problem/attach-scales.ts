import {
  decodeToFloat64,
  formats,
  tensorScales,
  type ScaleFactors,
  type ScaleName,
  type Tensor,
} from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { Problem } from './problem.js';
import {
  binaryBlock,
  rank4,
  scaledTensors,
  scaleNames,
  scaleTarget,
  type ScaledTensor,
  type ScaleTarget,
  type Sizes,
} from './scale-target.js';

/** Factors of a tensor's elements, as files have them. */
export interface GivenScales {
  /**
   * A number: [] or [1]; by head: [heads] or [batch, heads], where heads are the tensor's own or those of K and V, and
   * the batch of packed sequences is their number; by block of rows too: [heads, blocks] or [batch, heads, blocks] with
   * `rowsPerBlock`, each sequence beginning with a block of its own; or of rank 4, or of the rank of the tensor without
   * `rowsPerBlock`, see `block_scale`.
   */
  readonly descale?: Tensor | undefined;
  /** Rows that share a factor of `descale`. */
  readonly rowsPerBlock?: number | undefined;
  /**
   * [batch, heads, rows, dim] with fewer rows or dimensions than the tensor has: each axis is split into that many
   * blocks of 2^n elements (the last block may be shorter).
   */
  readonly block_scale?: Tensor | undefined;
  /** A number. */
  readonly global_scale?: Tensor | undefined;
}

function describeShape({ shape }: { readonly shape: readonly number[] }): string {
  return `[${shape.join(', ')}]`;
}

/** Number of elements that share one of `count` factors; null if no equal blocks make that many. */
function evenBlock(size: number, count: number): number | null {
  if (count === 1) return Math.max(1, size);
  return count > 0 && size % count === 0 ? size / count : null;
}

/** Factors for [batch, heads, rows, dim] in their own shape, before it is adapted to the rank of the tensor. */
interface Placed {
  readonly values: Float64Array;
  readonly shape: Sizes;
  readonly blocks: Sizes;
}

function placedAlike(tensor: Tensor, values: Float64Array, { label, sizes }: ScaleTarget): Placed {
  const shape = rank4(tensor);
  const blockOf = [evenBlock, evenBlock, binaryBlock, binaryBlock] as const;
  const blocks = sizes.map((size, axis) => blockOf[axis](size, shape[axis]));
  if (tensor.shape.length > 4 || blocks.includes(null))
    throw new RequestError(
      `${label} has shape ${describeShape(tensor)}; give it the shape [${sizes.join(', ')}] of what it scales, with fewer rows or dimensions where blocks of 2^n share a factor`,
    );
  return { values, shape, blocks: blocks as unknown as Sizes };
}

/** Factors of every row, from those of a sequence, a head and a block of rows within the sequence. */
function placedByRow(
  values: Float64Array,
  [, heads, blocks]: readonly number[],
  rowsPerBlock: number,
  { sizes, sequences = [], rowsOf }: ScaleTarget,
): Placed {
  const rows = sizes[2];
  const spread = new Float64Array(heads * rows);
  sequences.forEach((sequence, index) => {
    const [first, count] = rowsOf(sequence);
    for (let head = 0; head < heads; head++)
      for (let i = 0; i < count; i++) {
        const block = Math.min(blocks - 1, Math.floor(i / rowsPerBlock));
        spread[head * rows + first + i] = values[(index * heads + head) * blocks + block];
      }
  });
  return {
    values: spread,
    shape: [1, heads, rows, 1],
    blocks: [1, sizes[1] / heads, 1, Math.max(1, sizes[3])],
  };
}

/** [batch, heads, blocks] of a descale's shape; null for a rank without a meaning. */
function byHead(given: readonly number[], isByBlock: boolean): readonly number[] | null {
  if (isByBlock) return given.length === 2 || given.length === 3 ? [1, ...given].slice(-3) : null;
  const isNumber = given.length === 0 || (given.length === 1 && given[0] === 1);
  if (isNumber) return [1, 1, 1];
  return given.length <= 2 ? [...[1, ...given].slice(-2), 1] : null;
}

/** A factor by batch, head and block of rows. */
function placedByHead(
  tensor: Tensor,
  values: Float64Array,
  rowsPerBlock: number | undefined,
  target: ScaleTarget,
): Placed {
  const { label, sizes, kvHeads, sequences, rowsOf } = target;
  const [batch, heads, rows, dim] = sizes;
  const mostRows =
    sequences === undefined
      ? rows
      : sequences.reduce((most, one) => Math.max(most, rowsOf(one)[1]), 0);
  const perBlock = rowsPerBlock ?? Math.max(1, mostRows);
  const wanted = Math.max(1, Math.ceil(mostRows / perBlock));
  const whole = sequences?.length ?? batch;
  const counts = byHead(tensor.shape, rowsPerBlock !== undefined);
  const [b, h, blocks] = counts ?? [0, 0, 0];
  if ((b !== 1 && b !== whole) || ![1, heads, kvHeads].includes(h) || blocks !== wanted)
    throw new RequestError(
      `${label} has shape ${describeShape(tensor)}; give ${
        rowsPerBlock === undefined
          ? `a number, [${heads}] or [${whole}, ${heads}], or a shape with ${label}_block rows a factor`
          : `[${whole}, ${heads}, ${wanted}], a factor for each ${rowsPerBlock} rows`
      }${heads === kvHeads ? '' : `, or ${kvHeads} in place of ${heads}`}`,
    );
  if (sequences !== undefined && (b !== 1 || blocks !== 1)) {
    const all = Float64Array.from(
      { length: whole * h * blocks },
      (_, i) => values[i % values.length],
    );
    return placedByRow(all, [whole, h, blocks], perBlock, target);
  }
  // Of several sequences the rows are those of all.
  const sharedRows = blocks === 1 ? Math.max(1, rows) : perBlock;
  return {
    values,
    shape: [b, h, blocks, 1],
    blocks: [
      b === 1 ? Math.max(1, batch) : 1,
      Math.max(1, heads / h),
      sharedRows,
      Math.max(1, dim),
    ],
  };
}

function checkFactors(label: string, values: Float64Array, orZero: boolean): void {
  const wrong = values.findIndex((x) => !((orZero ? x >= 0 : x > 0) && x < Infinity));
  if (wrong >= 0)
    throw new RequestError(
      `${label} has ${values[wrong]} at element ${wrong}; give ${orZero ? 'finite factors that are not negative' : 'positive finite factors'}`,
    );
}

/**
 * Whether factors lie as the elements do, axis by axis: block scales, and descales of rank 4 or, if the scaled
 * tensor has rank 3 and they are not by blocks of rows, of rank 3.
 */
export function liesAsElements(
  kind: ScaleName,
  { shape }: Pick<Tensor, 'shape'>,
  rank: number,
  isByBlock: boolean,
): boolean {
  return (
    kind === 'block_scale' || shape.length === 4 || (shape.length === 3 && rank === 3 && !isByBlock)
  );
}

function factorsOf(
  target: ScaleTarget,
  kind: ScaleName,
  { rowsPerBlock, ...scales }: GivenScales,
  rank: number,
): ScaleFactors[] {
  const source = scales[kind];
  if (source === undefined) return [];
  const values = decodeToFloat64(source.data, formats[source.format]);
  checkFactors(target.label, values, kind === 'block_scale');
  const {
    shape,
    blocks,
    values: spread,
  } = liesAsElements(kind, source, rank, rowsPerBlock !== undefined)
    ? placedAlike(source, values, target)
    : placedByHead(source, values, kind === 'descale' ? rowsPerBlock : undefined, target);
  const ofRank = (sizes: Sizes) => sizes.slice(4 - rank);
  const { format } = source;
  return spread.length === 0
    ? []
    : [{ name: kind, format, values: spread, shape: ofRank(shape), blocks: ofRank(blocks) }];
}

/**
 * A problem with the given scales attached to its q, k or v: `descale` and `global_scale` positive, block scales 0 at
 * least (as quantizers write them for a block of zeros).
 * @throws RequestError for factors that do not fit or are invalid
 */
export function attachScales(
  problem: Problem,
  given: Readonly<Partial<Record<ScaledTensor, GivenScales>>>,
): Problem {
  const scaled = scaledTensors.map((name): readonly [ScaledTensor, Tensor] => {
    const tensor = problem[name];
    const scales = given[name] ?? {};
    const factors = scaleNames.flatMap((kind) =>
      factorsOf(scaleTarget(problem, name, kind), kind, scales, tensor.shape.length),
    );
    if (factors.length === 0) return [name, tensor];
    try {
      return [name, { ...tensor, scales: tensorScales(tensor, factors) }];
    } catch (error) {
      if (error instanceof RequestError) throw new RequestError(`${name}: ${error.message}`);
      throw error;
    }
  });
  return { ...problem, ...Object.fromEntries(scaled) };
}
