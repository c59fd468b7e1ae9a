import fc from 'fast-check';
import { formats, patternsOf } from '../../src/formats/index.js';
import {
  broadcastStrides,
  problemShape,
  type BooleanTensor,
  type IntegerTensor,
  type Problem,
  type ProblemFeatures,
  type Sequence,
  type Tensor,
} from '../../src/problem/index.js';
import { patternTensor } from '../problem/packed-problem.js';
import { sequencesOf } from '../setup/problems.js';

/** Whether a size of a broadcast tensor is there or 1. */
const broadcast = (size: number) => fc.constantFrom(1, size);

function truthsOf(shape: readonly number[]): BooleanTensor {
  const data = new Uint8Array(shape.reduce((a, b) => a * b, 1));
  // Some are true in any case.
  data.forEach((_, i) => (data[i] = i % 3 === 0 ? 1 : 0));
  return { shape, data };
}

function integersOf(values: readonly number[], shape: readonly number[]): IntegerTensor {
  return { shape, data: Int32Array.from(values) };
}

/** Sizes that broadcastable tensors are broadcast to. */
interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
}

/** Shapes that are broadcast to some sizes, of rank 2 to 4. */
function scoreShape({ batch, heads, queries, keys }: Sizes): fc.Arbitrary<number[]> {
  return fc
    .tuple(broadcast(batch), broadcast(heads), broadcast(queries), broadcast(keys))
    .chain((shape) => fc.constantFrom(shape, shape.slice(1), shape.slice(2)));
}

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

function present(members: Readonly<Record<string, unknown>>): ProblemFeatures {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Features that any problem may have. */
function commonFeatures(sizes: Sizes): fc.Arbitrary<ProblemFeatures> {
  const { batch, heads } = sizes;
  return fc
    .record({
      mask: maybe(scoreShape(sizes).map(truthsOf)),
      bias: maybe(scoreShape(sizes).map((shape) => patternTensor(shape, 'bf16'))),
      alibiSlopes: maybe(
        fc.constantFrom([heads], [batch, heads]).map((shape) => patternTensor(shape, 'fp32')),
      ),
      sink: maybe(fc.boolean().map((inLse) => ({ logits: patternTensor([heads], 'fp32'), inLse }))),
      prefix: maybe(fc.integer({ min: 1, max: 9 })),
      dropout: maybe(
        fc
          .tuple(scoreShape(sizes).map(truthsOf), fc.double({ min: 0, max: 0.9, noNaN: true }))
          .map(([kept, probability]) => ({ kept, probability })),
      ),
    })
    .map(present);
}

/** Features that problems have of which each batch is as long. */
function batchFeatures({ batch, heads, queries, keys }: Sizes): fc.Arbitrary<ProblemFeatures> {
  const segments = fc.boolean().map((perBatch) => {
    const of = (length: number) => {
      const shape = perBatch ? [batch, length] : [length];
      return integersOf(
        Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.floor(i / 2) - 1),
        shape,
      );
    };
    return { queries: of(queries), keys: of(keys) };
  });
  const blocks = fc
    .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }), broadcast(heads))
    .map(([blockQueries, blockKeys, blockHeads]) => {
      const rows = [1, blockHeads, Math.ceil(queries / blockQueries)];
      const columns = Math.ceil(keys / blockKeys);
      const count = rows.reduce((a, b) => a * b);
      return {
        counts: integersOf(new Array<number>(count).fill(Math.min(2, columns)), rows),
        indices: integersOf(
          Array.from({ length: count * columns }, (_, i) => i % columns),
          [...rows, columns],
        ),
        blockQueries,
        blockKeys,
      };
    });
  return fc.record({ segments: maybe(segments), blockMask: maybe(blocks) }).map(present);
}

const laws = fc.record({
  scale: fc.double({ noNaN: true, noDefaultInfinity: true }),
  causal: fc.boolean(),
  window: fc.constantFrom(null, { left: 3, right: -1 }, { left: 0, right: 2 }),
  softcap: fc.constantFrom(null, 30, 0.5),
});

const tensorFormat = fc.constantFrom('bf16', 'fp16', 'fp32', 'e4m3', 'fp64' as const);

/** Problems that are one tensor of batches, with any features. */
export const batchProblems: fc.Arbitrary<Problem> = fc
  .record({
    batch: fc.integer({ min: 1, max: 2 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 2 }),
    queries: fc.integer({ min: 1, max: 4 }),
    keys: fc.integer({ min: 1, max: 5 }),
    vDim: fc.integer({ min: 1, max: 3 }),
    format: tensorFormat,
  })
  .chain(({ batch, kvHeads, group, queries, keys, vDim, format }) => {
    const sizes = { batch, heads: kvHeads * group, queries, keys };
    return fc
      .tuple(laws, commonFeatures(sizes), batchFeatures(sizes))
      .map(([law, common, ofBatch]) => ({
        q: patternTensor([batch, sizes.heads, queries, 2], format),
        k: patternTensor([batch, kvHeads, keys, 2], format),
        v: patternTensor([batch, kvHeads, keys, vDim], format),
        ...law,
        ...common,
        ...ofBatch,
      }));
  });

/** Problems of packed sequences, some without queries or keys, with any features. */
export const packedProblems: fc.Arbitrary<Problem> = fc
  .record({
    sizes: fc
      .array(fc.tuple(fc.nat(3), fc.nat(6)), { minLength: 1, maxLength: 4 })
      .filter((all) => all.some(([queries]) => queries > 0) && all.some(([, keys]) => keys > 0)),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 2 }),
    vDim: fc.integer({ min: 1, max: 3 }),
    format: tensorFormat,
  })
  .chain(({ sizes, kvHeads, group, vDim, format }) => {
    const sequences = sequencesOf(sizes);
    const most = (of: (one: Sequence) => number) => Math.max(...sequences.map(of));
    const whole = {
      batch: sizes.length,
      heads: kvHeads * group,
      queries: most(({ queries }) => queries),
      keys: most(({ keys }) => keys),
    };
    const [queries, keys] = [0, 1].map((side) => sizes.reduce((sum, one) => sum + one[side]!, 0));
    return fc.tuple(laws, commonFeatures(whole)).map(([law, common]) => ({
      q: patternTensor([1, whole.heads, queries!, 2], format),
      k: patternTensor([1, kvHeads, keys!, 2], format),
      v: patternTensor([1, kvHeads, keys!, vDim], format),
      ...law,
      ...common,
      sequences,
    }));
  });

type AnyTensor = Tensor | BooleanTensor | IntegerTensor;

function bitsOf(tensor: AnyTensor) {
  const { data } = tensor;
  const patterns = 'format' in tensor ? patternsOf(tensor.data, formats[tensor.format]) : data;
  return {
    format: 'format' in tensor ? tensor.format : data.constructor.name,
    elements: [...(patterns as Uint8Array)],
  };
}

function isTensor(value: unknown): value is AnyTensor {
  return typeof value === 'object' && value !== null && 'data' in value && 'shape' in value;
}

/** The elements of a tensor over queries and keys that a problem reads, sequence by sequence. */
function readElements(tensor: AnyTensor, problem: Problem): unknown {
  const { format, elements } = bitsOf(tensor);
  const words = format === 'fp64' ? 2 : 1;
  const strides = broadcastStrides(tensor.shape);
  const { batch, heads, queries, keys } = problemShape(problem);
  const sequences = problem.sequences ?? Array.from({ length: batch }, () => ({ queries, keys }));
  const read: number[] = [];
  sequences.forEach((one, sequence) => {
    for (let head = 0; head < heads; head++)
      for (let query = 0; query < one.queries; query++)
        for (let key = 0; key < one.keys; key++) {
          const at =
            sequence * strides.batch +
            head * strides.head +
            query * strides.query +
            key * strides.key;
          read.push(...elements.slice(at * words, (at + 1) * words));
        }
  });
  return { format, read };
}

/**
 * A problem as plain numbers, its tensors as bits; leading sizes of 1 do not count, nor elements that no sequence
 * reads, nor how it was posed.
 */
export function plainProblem(problem: Problem): unknown {
  const plain = (value: unknown, name = ''): unknown => {
    if (isTensor(value)) {
      if (['mask', 'bias', 'kept'].includes(name)) return readElements(value, problem);
      const shape = [...value.shape];
      while (shape.length > 1 && shape[0] === 1) shape.shift();
      return { shape, ...bitsOf(value) };
    }
    if (Array.isArray(value)) return value.map((member) => plain(member));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== 'stored')
        .map(([key, member]) => [key, plain(member, key)]),
    );
  };
  return plain(problem);
}

/** Stored tensors as plain bits. */
export function plainTensors(tensors: Readonly<Record<string, AnyTensor>>): unknown {
  return Object.fromEntries(
    Object.entries(tensors).map(([name, tensor]) => [
      name,
      { shape: tensor.shape, ...bitsOf(tensor) },
    ]),
  );
}
