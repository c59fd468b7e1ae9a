import { formats, type PatternArray, patternsOf, storageOf } from '../formats/index.js';
import {
  changeFeatures,
  dropFeature,
  keepFeature,
  storedOf,
  type Problem,
  type StoredProblem,
  type Tensor,
} from '../problem/index.js';

/** A tensor in memory that threads share. */
export type SharedTensor = Omit<Tensor, 'data'> & { readonly patterns: PatternArray };

/** A problem whose tensors lie in memory that threads share; of its posed form it keeps lengths and places alone. */
export type SharedProblem = Omit<
  Problem,
  'q' | 'k' | 'v' | 'bias' | 'alibiSlopes' | 'sink' | 'stored'
> & {
  readonly tensors: Readonly<Record<string, SharedTensor>>;
  readonly inLse: boolean;
  readonly posed: Pick<StoredProblem, 'queries' | 'keys' | 'tensors'> | null;
};

/** The posed form of a problem, without tensors of numbers. */
function posedPlaces(problem: Problem): SharedProblem['posed'] {
  const stored = storedOf(problem);
  if (stored === null) return null;
  const { queries, keys, tensors } = stored;
  const lengths = Object.entries(tensors ?? {}).filter(
    ([, { data }]) => data instanceof Int32Array,
  );
  return { queries, keys, tensors: tensors === null ? null : Object.fromEntries(lengths) };
}

/** A copy of an array in shared memory, which other threads are given as it is. */
function shared<Elements extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(
  source: Elements,
): Elements {
  const View = source.constructor as new (buffer: SharedArrayBuffer) => Elements;
  const copy = new View(new SharedArrayBuffer(source.byteLength));
  copy.set(source);
  return copy;
}

/** An object whose array `data` lies in shared memory. */
function withSharedData<Holder extends { readonly data: Uint8Array | Int32Array }>(
  holder: Holder,
): Holder {
  return { ...holder, data: shared(holder.data) };
}

/** The tensor with its elements copied to shared memory. */
export function shareTensor({ data, ...rest }: Tensor): SharedTensor {
  return { ...rest, patterns: shared(patternsOf(data, formats[rest.format])) };
}

/** The tensor on the shared memory itself. */
export function unshareTensor({ patterns, ...rest }: SharedTensor): Tensor {
  return { ...rest, data: storageOf(formats[rest.format], patterns) };
}

/** The problem with its tensors copied to shared memory. */
export function shareProblem(problem: Problem): SharedProblem {
  return { ...shareTensors(problem), posed: posedPlaces(problem) };
}

function shareTensors({
  q,
  k,
  v,
  bias,
  alibiSlopes,
  sink,
  stored: _,
  ...rest
}: Problem): Omit<SharedProblem, 'posed'> {
  const tensors = Object.entries({ q, k, v, bias, alibiSlopes, sink: sink?.logits }).flatMap(
    ([name, tensor]) => (tensor === undefined ? [] : [[name, shareTensor(tensor)] as const]),
  );
  return {
    ...rest,
    ...changeFeatures(rest, {
      mask: withSharedData,
      // These are among the tensors.
      bias: dropFeature,
      alibiSlopes: dropFeature,
      sink: dropFeature,
      segments: ({ queries, keys }) => ({
        queries: withSharedData(queries),
        keys: withSharedData(keys),
      }),
      prefix: keepFeature,
      blockMask: ({ counts, indices, ...sizes }) => ({
        ...sizes,
        counts: withSharedData(counts),
        indices: withSharedData(indices),
      }),
      keyLists: ({ indices, ...rest }) => ({ ...rest, indices: withSharedData(indices) }),
      dropout: ({ kept, ...rest }) => ({ ...rest, kept: withSharedData(kept) }),
      sequences: keepFeature,
      keyRanges: keepFeature,
      rows: keepFeature,
    }),
    tensors: Object.fromEntries(tensors),
    inLse: sink?.inLse ?? false,
  };
}

/** The problem on the shared memory itself. */
export function unshareProblem({ tensors, inLse, posed, ...rest }: SharedProblem): Problem {
  const { q, k, v, bias, alibiSlopes, sink } = Object.fromEntries(
    Object.entries(tensors).map(([name, tensor]) => [name, unshareTensor(tensor)]),
  ) as Readonly<Record<'q' | 'k' | 'v', Tensor>> & Readonly<Partial<Record<string, Tensor>>>;
  const problem: Problem = {
    ...rest,
    q,
    k,
    v,
    ...(bias === undefined ? {} : { bias }),
    ...(alibiSlopes === undefined ? {} : { alibiSlopes }),
    ...(sink === undefined ? {} : { sink: { logits: sink, inLse } }),
  };
  return posed === null ? problem : { ...problem, stored: { ...posed, of: problem } };
}
