import {
  encodeFromFloat64,
  formats,
  tensorScales,
  type FormatName,
  type TensorScales,
} from '../../../src/formats/index.js';
import type { Dropout, ProblemFeatures, Sink, Tensor } from '../../../src/problem/index.js';
import { storageKinds, type FeatureKind } from './feature-kinds.js';
import { tensorNames, tensorShape, type PlainProblem } from '../plain-problem.js';
import type { RandomValues } from '../values.js';
import { drawKeyLists } from './draw-lists.js';
import { drawBlockMask, drawMask, drawSegments, drawSequences } from './draw-masks.js';
import {
  drawBroadcastShape,
  fillBroadcast,
  oneOf,
  wholeSizes,
  type FeatureRequest,
} from './feature-request.js';

/** A tensor of a shape. */
export function encodedTensor(
  format: FormatName,
  shape: readonly number[],
  values: Float64Array,
): Tensor {
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** fp32, or the format of Q if that has 16 bits: the formats that biases and sinks are given in. */
function besideFormat({ format, random }: FeatureRequest): FormatName {
  return format.storageBits === 16 && random.integer(0, 1) === 0 ? format.name : 'fp32';
}

/** Sizes of biases, and the share of them that hide their keys. */
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

const dropoutProbabilities: readonly number[] = [0, 0.1, 0.25, 0.5, 0.9];

function drawDropout(request: FeatureRequest): Dropout {
  const { random } = request;
  const whole = wholeSizes(request);
  const probability = oneOf(dropoutProbabilities, random);
  const shape = random.integer(0, 3) > 0 ? whole : drawBroadcastShape(whole, random);
  const data = fillBroadcast(shape, () => +(random.uniform() >= probability));
  return { kept: { shape, data: Uint8Array.from(data) }, probability };
}

/** Rows that share a factor where blocks of rows have one each. */
const factorRows: readonly number[] = [1, 16, 64, 128];

/** Factors of fp32 from 2^-4 to 2^3 for a tensor of a shape: one, one for each head, or one for blocks of rows. */
function drawTensorFactors(shape: readonly number[], request: FeatureRequest): TensorScales {
  const { format, random, sequences } = request;
  const [batches, heads, rows, columns] = shape;
  const whole = [batches, heads, rows].map((size) => Math.max(size, 1));
  // Rows of packed sequences have no factors of their own.
  const kind = random.integer(0, sequences === null ? 2 : 1);
  const blocks =
    kind === 0 ? whole : kind === 1 ? [1, 1, whole[2]] : [1, 1, oneOf(factorRows, random)];
  const counts = [batches, heads, rows].map((size, axis) => Math.ceil(size / blocks[axis]));
  const values = fillBroadcast([...counts, 1], () =>
    Math.fround((1 + random.uniform()) * 2 ** random.integer(-4, 2)),
  );
  return tensorScales({ format: format.name, shape }, [
    {
      name: 'descale',
      format: 'fp32',
      values,
      shape: [...counts, 1],
      blocks: [...blocks, Math.max(columns, 1)],
    },
  ]);
}

/** Factors of some of Q, K and V in formats of 8 bits; none of others. */
export function drawFactors(request: FeatureRequest): PlainProblem['factors'] {
  const { sizes, format, random } = request;
  if (format.storageBits !== 8) return {};
  const chosen = tensorNames.filter(() => random.integer(0, 3) > 0);
  return Object.fromEntries(
    chosen.map((name) => [name, drawTensorFactors(tensorShape(name, sizes), request)]),
  );
}

/** Draws the features that a kind adds to a problem. */
type FeatureDrawer = (request: FeatureRequest) => ProblemFeatures;

const drawers: Readonly<Record<FeatureKind, FeatureDrawer>> = {
  mask: (request) => ({ mask: drawMask(request) }),
  bias: (request) => ({ bias: drawBias(request) }),
  alibi: (request) => ({ alibiSlopes: drawSlopes(request) }),
  sink: (request) => ({ sink: drawSink(request) }),
  segments: (request) => ({ segments: drawSegments(request) }),
  prefix: ({ sizes, random }) => ({ prefix: random.integer(0, sizes.keys + 1) }),
  'block-mask': (request) => ({ blockMask: drawBlockMask(request) }),
  'key-lists': (request) => ({ keyLists: drawKeyLists(request) }),
  dropout: (request) => ({ dropout: drawDropout(request) }),
  packed: (request) => ({ sequences: drawSequences(request) }),
  padded: (request) => ({ sequences: drawSequences(request) }),
  paged: (request) => ({ sequences: drawSequences(request) }),
  // These are tensors' own: see `drawFactors`.
  descale: () => ({}),
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
  const ordered = [...kinds].sort((a, b) => +storageKinds.includes(b) - +storageKinds.includes(a));
  for (const kind of ordered) {
    const sequences = features.sequences ?? null;
    features = { ...drawers[kind]({ ...request, sequences }), ...features };
  }
  return features;
}
