import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type {
  BlockMask,
  BooleanTensor,
  KeyLists,
  ProblemFeatures,
  Tensor,
} from '../../../src/problem/index.js';

/** A broadcast tensor with one of its axes taken from its first place. */
function* squeezed<T extends Pick<BooleanTensor, 'shape'> & { readonly data: Tensor['data'] }>(
  tensor: T,
): Generator<T> {
  const sizes = [1, 1, 1, 1, ...tensor.shape].slice(-4);
  for (let axis = 0; axis < 4; axis++) {
    if (sizes[axis] === 1) continue;
    const shape = sizes.map((size, i) => (i === axis ? 1 : size));
    const after = sizes.slice(axis + 1).reduce((product, size) => product * size, 1);
    const count = shape.reduce((product, size) => product * size, 1);
    const { data } = tensor;
    const left = new (data.constructor as new (length: number) => Tensor['data'])(count);
    for (let i = 0; i < count; i++)
      left[i] = data[Math.floor(i / after) * after * sizes[axis] + (i % after)];
    yield { ...tensor, shape, data: left };
  }
}

/** Numbers that replace all elements of a tensor, plainest first. */
const plainValues: readonly ((x: number) => number)[] = [
  () => 0,
  () => 1,
  (x) => Math.sign(x) || 0,
  Math.round,
];

function* plainerValues(tensor: Tensor): Generator<Tensor> {
  const values = decodeTensor(tensor);
  for (const plainer of plainValues) {
    const left = values.map((x) => (Number.isFinite(x) ? plainer(x) : x));
    yield { ...tensor, data: encodeFromFloat64(formats[tensor.format], left) };
  }
  if (values.includes(-Infinity))
    yield {
      ...tensor,
      data: encodeFromFloat64(
        formats[tensor.format],
        values.map((x) => (x === -Infinity ? 0 : x)),
      ),
    };
}

/** Every block listed for every row of blocks. */
function allBlocks(blocks: BlockMask): BlockMask {
  const { counts, indices } = blocks;
  const capacity = indices.shape.at(-1) ?? 0;
  return {
    ...blocks,
    counts: { ...counts, data: counts.data.map(() => capacity) },
    indices: { ...indices, data: indices.data.map((_, i) => i % capacity) },
  };
}

/** Lists without their second half, and in ascending order. */
function* shorterLists(lists: KeyLists): Generator<KeyLists> {
  const { indices } = lists;
  const length = indices.shape.at(-1) ?? 0;
  const left = Math.ceil(length / 2);
  if (left < length) {
    const data = indices.data.filter((_, i) => i % length < left);
    yield { ...lists, indices: { shape: [...indices.shape.slice(0, -1), left], data } };
  }
}

/** Simpler forms of each feature, beside none. */
type Simplifier<Name extends keyof ProblemFeatures> = (
  feature: NonNullable<ProblemFeatures[Name]>,
) => Iterable<NonNullable<ProblemFeatures[Name]>>;

function* simplerMasks(mask: BooleanTensor): Generator<BooleanTensor> {
  yield { ...mask, data: mask.data.map(() => 1) };
  for (const left of squeezed(mask)) yield left;
}

/** Sequences are simplified with the rows that they pack; samples and parts are not drawn. */
const simplifiers: { readonly [Name in keyof ProblemFeatures]-?: Simplifier<Name> | null } = {
  mask: simplerMasks,
  *bias(bias) {
    yield* plainerValues(bias);
    yield* squeezed(bias);
  },
  *alibiSlopes(slopes) {
    yield* plainerValues(slopes);
    const heads = slopes.shape.at(-1) ?? 0;
    if (slopes.shape.length === 2)
      yield { ...slopes, shape: [heads], data: slopes.data.slice(0, heads) };
  },
  *sink(sink) {
    for (const logits of plainerValues(sink.logits)) yield { ...sink, logits };
  },
  *segments({ queries, keys }) {
    const one = (tensor: typeof queries) => ({ ...tensor, data: tensor.data.map(() => 1) });
    yield { queries: one(queries), keys: one(keys) };
    const two = (tensor: typeof queries) => ({
      ...tensor,
      data: tensor.data.map((segment) => Math.min(segment, 1)),
    });
    yield { queries: two(queries), keys: two(keys) };
  },
  *prefix(prefix) {
    if (prefix > 0) yield 0;
    if (prefix > 1) yield Math.floor(prefix / 2);
  },
  *blockMask(blocks) {
    if (blocks.indices.data.length > 0) yield allBlocks(blocks);
  },
  *keyLists(lists) {
    for (const shorter of shorterLists(lists)) yield shorter;
  },
  *dropout(dropout) {
    for (const kept of simplerMasks(dropout.kept)) yield { ...dropout, kept };
    yield { ...dropout, probability: 0 };
    yield { ...dropout, probability: 0.5 };
  },
  sequences: null,
  keyRanges: null,
  rows: null,
};

/** Simpler forms of one feature of a problem, in place of it. */
export function* simplerFeature<Name extends keyof ProblemFeatures>(
  name: Name,
  features: ProblemFeatures,
): Generator<ProblemFeatures> {
  const feature = features[name];
  const simplify = simplifiers[name] as Simplifier<Name> | null;
  if (feature === undefined || simplify === null) return;
  for (const simpler of simplify(feature)) yield { ...features, [name]: simpler };
}
