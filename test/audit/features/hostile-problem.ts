import type { RandomValues } from '../../../properties/problems/values.js';
import { decodeTensor, type FormatName } from '../../../src/formats/index.js';
import type { Problem, Sequence } from '../../../src/problem/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';

/** The features that a hostile problem may have, one or several at a time. */
export const hostileFeatures = [
  'bias',
  'large-bias',
  'cancelling-bias',
  'common-bias',
  'hiding-bias',
  'alibi',
  'sink',
  'dropout',
  'mask',
  'sequences',
  'softcap',
  'causal',
] as const;
/** One of {@link hostileFeatures}. */
export type HostileFeature = (typeof hostileFeatures)[number];

function choose<T>(random: RandomValues, values: readonly T[]): T {
  return values[random.integer(0, values.length - 1)];
}

function packed(random: RandomValues, queries: number, keys: number): Sequence[] {
  const [q, k] = [random.integer(1, queries - 1), random.integer(1, keys - 1)];
  return [
    { firstQuery: 0, queries: q, firstKey: 0, keys: k },
    { firstQuery: q, queries: queries - q, firstKey: k, keys: keys - k },
  ];
}

/** What is added to each score, by kind of bias, in natural units. */
function biasOf(feature: HostileFeature, random: RandomValues): (index: number) => number {
  switch (feature) {
    case 'large-bias':
      return () => 10 ** random.integer(1, 5) * random.normal();
    case 'common-bias': {
      const common = choose(random, [-1e5, -3000.7, 4096.3, 1e5]);
      return () => common;
    }
    case 'hiding-bias': {
      const hiding = choose(random, [-1e4, -65504, -1e9, -Infinity]);
      return () => (random.uniform() < 0.4 ? hiding : 0);
    }
    default:
      return () => 2 * random.normal();
  }
}

/**
 * A problem that makes a feature's errors as large as they get: bias up to 1e5, of one number for all keys, or that cancels
 * scores in the hundreds; sinks far above and far below all scores; dropout of nine parts in ten; one sequence with keys
 * and values a thousand times as large as another's.
 */
export function hostileProblem(random: RandomValues, features: readonly HostileFeature[]): Problem {
  const has = (feature: HostileFeature) => features.includes(feature);
  const format = choose<FormatName>(random, ['bf16', 'fp16', 'fp32']);
  const [heads, kvHeads] = choose(random, [
    [2, 1],
    [2, 2],
    [1, 1],
  ]);
  const [queries, keys] = [random.integer(2, 70), random.integer(2, 150)];
  const [dim, vDim] = [random.integer(1, 20), random.integer(1, 12)];
  const sequences = has('sequences') ? packed(random, queries, keys) : undefined;
  const batch = sequences === undefined ? random.integer(1, 2) : 1;
  const cancels = has('cancelling-bias');
  const isHuge = (key: number) =>
    sequences !== undefined && !cancels && key % keys >= sequences[1].firstKey;
  const size = cancels ? 20 : choose(random, [0.3, 1, 1, 4]);
  const plain = filledProblem(
    { batch, heads, kvHeads, queries, keys, dim, vDim, format },
    {
      q: () => size * random.normal(),
      k: (i) => (isHuge(Math.floor(i / dim)) ? 30 : 1) * (cancels ? 20 : 1) * random.normal(),
      v: (i) =>
        (isHuge(Math.floor(i / vDim)) ? 1000 : 1) * (random.normal() + choose(random, [0, 0, 3])),
    },
    { causal: has('causal'), softcap: has('softcap') ? choose(random, [1, 15, 50]) : null },
  );
  const kind = features.find((feature) => feature.endsWith('bias'));
  const longest = (size: (one: Sequence) => number, all: number) =>
    sequences === undefined ? all : Math.max(...sequences.map(size));
  const whole = [
    sequences?.length ?? batch,
    heads,
    longest((one) => one.queries, queries),
    longest((one) => one.keys, keys),
  ];
  const ofBias = kind === undefined ? null : biasOf(kind, random);
  // A score in the hundreds, and the same with the other sign.
  const bias =
    ofBias === null
      ? undefined
      : cancels
        ? cancellingBias(plain, random, whole)
        : tensor(choose<FormatName>(random, ['fp32', 'bf16']), whole, ofBias);
  const data = Uint8Array.from({ length: whole.reduce((a, b) => a * b, 1) }, () =>
    random.uniform() < 0.6 ? 1 : 0,
  );
  data[0] = 1;
  const logits = () => choose(random, [-1e4, -30, 0, 3, 40, 200, 1e4, -Infinity]);
  return {
    ...plain,
    ...(sequences === undefined ? {} : { sequences }),
    ...(bias === undefined ? {} : { bias }),
    ...(has('alibi')
      ? { alibiSlopes: tensor('fp32', [heads], () => choose(random, [0.5, 0.0039, 100, -0.3])) }
      : {}),
    ...(has('sink')
      ? { sink: { logits: tensor('bf16', [heads], logits), inLse: random.uniform() < 0.5 } }
      : {}),
    ...(has('mask') ? { mask: { shape: whole, data } } : {}),
    ...(has('dropout')
      ? {
          dropout: {
            kept: { shape: whole, data: data.map((x) => (random.uniform() < 0.3 ? 1 : 1 - x)) },
            probability: choose(random, [0.1, 0.25, 0.5, 0.9, 0.99]),
          },
        }
      : {}),
  };
}

/** Minus what the first query's scores are, roughly, so that sums are small beside what they are sums of. */
function cancellingBias({ q, k, scale }: Problem, random: RandomValues, shape: readonly number[]) {
  const heads = q.shape[1];
  const [queries, keys] = [q.shape[2], k.shape[2]];
  const kvHeads = k.shape[1];
  const dim = q.shape[3];
  const decoded = [q, k].map((tensor) => decodeTensor(tensor));
  return tensor('fp32', shape, (index) => {
    const key = index % shape[3];
    const query = Math.floor(index / shape[3]) % shape[2];
    const head = Math.floor(index / shape[3] / shape[2]) % heads;
    const sequence = Math.floor(index / shape[3] / shape[2] / heads) % q.shape[0];
    const kv = sequence * kvHeads + Math.floor(head / (heads / kvHeads));
    let dot = 0;
    for (let t = 0; t < dim; t++)
      dot +=
        decoded[0][((sequence * heads + head) * queries + query) * dim + t] *
        decoded[1][(kv * keys + key) * dim + t];
    return -scale * dot + random.normal();
  });
}
