import { encodeFromFloat64, formats, type FormatName } from '../../../src/formats/index.js';
import type {
  BlockMask,
  BooleanTensor,
  Dropout,
  IntegerTensor,
  ProblemFeatures,
  Segments,
  Sequence,
  Sink,
  Tensor,
} from '../../../src/problem/index.js';
import type { FeatureKind } from '../../../kernels/index.js';
import type { RandomValues } from '../values.js';
import {
  drawBroadcastShape,
  drawCuts,
  fillBroadcast,
  oneOf,
  sequencesOf,
  wholeSizes,
  type BroadcastPlace,
  type FeatureRequest,
  type WholeSizes,
} from './feature-request.js';

/** A tensor of a shape. */
export function encodedTensor(
  format: FormatName,
  shape: readonly number[],
  values: Float64Array,
): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** Whether a key is visible at a place. */
type Visibility = (place: BroadcastPlace) => boolean;

/** Shares of the keys that random masks leave. */
const densities: readonly number[] = [0.02, 0.3, 0.7, 0.98];

/** Ways to hide keys, from masks that go by places to those that go by nothing. */
const visibilities: readonly ((
  whole: WholeSizes,
  blockKeys: number,
  random: RandomValues,
) => Visibility)[] = [
  (_whole, _blockKeys, random) => {
    const density = oneOf(densities, random);
    return () => random.uniform() < density;
  },
  ([, , queries, keys]) =>
    ({ query, key }) =>
      key <= query + keys - queries,
  (_whole, blockKeys) =>
    ({ query, key }) =>
      (Math.floor(query / blockKeys) + Math.floor(key / blockKeys)) % 2 === 0,
  ([, , , keys], blockKeys, random) => {
    const tile = random.integer(0, Math.max(Math.ceil(keys / blockKeys) - 1, 0));
    return ({ key }) => Math.floor(key / blockKeys) === tile;
  },
  (_whole, _blockKeys, random) => {
    const share = oneOf(densities, random);
    const rows = new Map<number, boolean>();
    return ({ query }) => {
      const known = rows.get(query) ?? random.uniform() < share;
      rows.set(query, known);
      return known;
    };
  },
];

/** A mask of a shape; some key is visible somewhere, or it would be none. */
export function booleanTensor(shape: readonly number[], isVisible: Visibility): BooleanTensor {
  const data = Uint8Array.from(fillBroadcast(shape, (place) => +isVisible(place)));
  if (data.length > 0 && !data.includes(1)) data[0] = 1;
  return { shape, data };
}

function drawMask(request: FeatureRequest): BooleanTensor {
  const { tiling, random } = request;
  const whole = wholeSizes(request);
  const shape = drawBroadcastShape(whole, random);
  return booleanTensor(shape, oneOf(visibilities, random)(whole, tiling.blockKeys, random));
}

/** fp32, or what Q has where that has 16 bits: formats that biases and sinks are given in. */
function besideFormat({ format, random }: FeatureRequest): FormatName {
  return format.storageBits === 16 && random.integer(0, 1) === 0 ? format.name : 'fp32';
}

/** Biases: how large, and which share of them hides its key. */
const biases: readonly { readonly size: number; readonly hidden: number }[] = [
  { size: 1, hidden: 0 },
  { size: 8, hidden: 0 },
  { size: 256, hidden: 0 },
  { size: 1, hidden: 0.3 },
  { size: 0, hidden: 0.6 },
];

function drawBias(request: FeatureRequest): Tensor {
  const { random } = request;
  const shape = drawBroadcastShape(wholeSizes(request), random);
  const { size, hidden } = oneOf(biases, random);
  const values = fillBroadcast(shape, () =>
    random.uniform() < hidden ? -Infinity : size * random.normal(),
  );
  return encodedTensor(besideFormat(request), shape, values);
}

/** FlashAttention's slopes, 2^(−8·(h + 1)/heads), or any from 0 to 1; one set, or one for each batch. */
function drawSlopes(request: FeatureRequest): Tensor {
  const { random } = request;
  const [batches, heads] = wholeSizes(request);
  const isUsual = random.integer(0, 1) === 0;
  const shape = random.integer(0, 1) === 0 ? [heads] : [batches, heads];
  const values = fillBroadcast(shape, ({ key }) =>
    isUsual ? 2 ** ((-8 * (key + 1)) / heads) : random.uniform(),
  );
  return encodedTensor('fp32', shape, values);
}

/** Logits of sinks: none, beside usual scores, and far above or below. */
const sinkLogits: readonly ((random: RandomValues) => number)[] = [
  () => -Infinity,
  () => 0,
  (random) => 2 * random.normal(),
  (random) => 2 * random.normal(),
  (random) => 10 + 30 * random.uniform(),
  (random) => -10 - 90 * random.uniform(),
];

function drawSink(request: FeatureRequest): Sink {
  const { random } = request;
  const [, heads] = wholeSizes(request);
  const values = fillBroadcast([heads], () => oneOf(sinkLogits, random)(random));
  return {
    logits: encodedTensor(besideFormat(request), [heads], values),
    inLse: random.integer(0, 1) === 0,
  };
}

/** The most documents, and the most packed sequences. */
const mostPieces = 5;

/** Which piece each of some places is in. */
export function piecesOf(ends: readonly number[], length: number): number[] {
  let piece = 0;
  return Array.from({ length }, (_, place) => {
    while (place >= ends[piece] && piece < ends.length - 1) piece++;
    return piece;
  });
}

/** The documents of queries whose last sits on the last key; those before the first key are in the first. */
export function alignedSegments(ofKeys: readonly number[], queries: number): number[] {
  const more = ofKeys.length - queries;
  return Array.from({ length: queries }, (_, query) => ofKeys[Math.max(0, query + more)] ?? 0);
}

function drawSegments({ sizes, tiling, random }: FeatureRequest): Segments {
  const { batch, queries, keys } = sizes;
  const isShared = random.integer(0, 1) === 0;
  const sets = Array.from({ length: isShared ? 1 : batch }, () => {
    const pieces = random.integer(1, mostPieces);
    const ofKeys = piecesOf(drawCuts(keys, pieces, tiling.blockKeys, random), keys);
    const kind = random.integer(0, 3);
    // Documents of queries that are cut elsewhere, and documents in no order.
    if (kind === 0)
      return {
        queries: piecesOf(drawCuts(queries, pieces, tiling.blockKeys, random), queries),
        keys: ofKeys,
      };
    if (kind === 1) {
      const any = (length: number) => Array.from({ length }, () => random.integer(1, pieces));
      return { queries: any(queries), keys: any(keys) };
    }
    return { queries: alignedSegments(ofKeys, queries), keys: ofKeys };
  });
  const tensor = (name: 'queries' | 'keys', length: number): IntegerTensor => ({
    shape: isShared ? [length] : [batch, length],
    data: Int32Array.from(sets.flatMap((set) => set[name])),
  });
  return { queries: tensor('queries', queries), keys: tensor('keys', keys) };
}

/** Keys of a block, beside the kernel's own. */
const blockSizes: readonly number[] = [1, 16, 64, 128];

function drawBlockMask(request: FeatureRequest): BlockMask {
  const { tiling, random } = request;
  const [batches, heads, queries, keys] = wholeSizes(request);
  const size = () => oneOf([tiling.blockKeys, ...blockSizes], random);
  const [blockQueries, blockKeys] = [size(), size()];
  const rows = Math.ceil(queries / blockQueries);
  const columns = Math.ceil(keys / blockKeys);
  const leading = [oneOf([1, batches], random), oneOf([1, heads], random), rows];
  const lists = leading[0] * leading[1] * rows;
  const share = oneOf([0.2, 0.5, 0.9], random);
  const counts = new Int32Array(lists);
  const indices = new Int32Array(lists * columns);
  for (let list = 0; list < lists; list++) {
    const seen = Array.from({ length: columns }, (_, column) => column).filter(
      () => random.uniform() < share,
    );
    if (random.integer(0, 1) === 0) seen.reverse();
    counts[list] = seen.length;
    indices.set(seen, list * columns);
  }
  return {
    counts: { shape: leading, data: counts },
    indices: { shape: [...leading, columns], data: indices },
    blockQueries,
    blockKeys,
  };
}

const dropoutProbabilities: readonly number[] = [0, 0.1, 0.25, 0.5, 0.9];

function drawDropout(request: FeatureRequest): Dropout {
  const { random } = request;
  const whole = wholeSizes(request);
  const probability = oneOf(dropoutProbabilities, random);
  const shape = random.integer(0, 3) > 0 ? whole : drawBroadcastShape(whole, random);
  const data = fillBroadcast(shape, () => +(random.uniform() >= probability));
  return { kept: { shape, data: Uint8Array.from(data) }, probability };
}

/** Sequences of any lengths, empty ones among them; the ends of queries and keys alike where both may be. */
function drawSequences({ sizes, tiling, random }: FeatureRequest): readonly Sequence[] {
  const { queries, keys } = sizes;
  const pieces = random.integer(1, mostPieces);
  const ofKeys = drawCuts(keys, pieces, tiling.blockKeys, random);
  const areAlike = queries === keys && random.integer(0, 3) > 0;
  return sequencesOf(
    areAlike ? ofKeys : drawCuts(queries, pieces, tiling.blockKeys, random),
    ofKeys,
  );
}

/** What a kind of feature adds to a problem. */
type FeatureDrawer = (request: FeatureRequest) => ProblemFeatures;

const drawers: Readonly<Record<FeatureKind, FeatureDrawer>> = {
  mask: (request) => ({ mask: drawMask(request) }),
  bias: (request) => ({ bias: drawBias(request) }),
  alibi: (request) => ({ alibiSlopes: drawSlopes(request) }),
  sink: (request) => ({ sink: drawSink(request) }),
  segments: (request) => ({ segments: drawSegments(request) }),
  prefix: ({ sizes, random }) => ({ prefix: random.integer(0, sizes.keys + 1) }),
  'block-mask': (request) => ({ blockMask: drawBlockMask(request) }),
  dropout: (request) => ({ dropout: drawDropout(request) }),
  packed: (request) => ({ sequences: drawSequences(request) }),
  // These are sizes.
  'wide-groups': () => ({}),
  'latent-dims': () => ({}),
};

/**
 * Features of some kinds, the same for the same stream of random numbers. Packed sequences come first, since the
 * sizes of other tensors follow from them.
 * @param given features that are there already
 */
export function drawFeatures(
  kinds: readonly FeatureKind[],
  request: Omit<FeatureRequest, 'sequences'>,
  given: ProblemFeatures = {},
): ProblemFeatures {
  let features = given;
  const ordered = [...kinds].sort((a, b) => +(b === 'packed') - +(a === 'packed'));
  for (const kind of ordered) {
    const sequences = features.sequences ?? null;
    features = { ...drawers[kind]({ ...request, sequences }), ...features };
  }
  return features;
}
