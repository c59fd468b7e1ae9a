import type { RandomValues } from '../../../../properties/problems/values.js';
import type { FormatName } from '../../../../src/formats/index.js';
import type { BooleanTensor, Problem, Sequence } from '../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../setup/problems.js';

/** The features that change what the oracle computes, beside masks. */
export const oracleFeatures = [
  'bias',
  'alibiSlopes',
  'sink',
  'dropout',
  'mask',
  'sequences',
  'rows',
  'softcap',
  'causal',
] as const;
/** One of {@link oracleFeatures}. */
export type OracleFeature = (typeof oracleFeatures)[number];

/** Sizes of a drawn problem; `dim` and `vDim` may differ. */
export interface FeaturedSizes {
  readonly queries: number;
  readonly keys: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly dim: number;
  readonly vDim: number;
}

function choose<T>(random: RandomValues, values: readonly T[]): T {
  return values[random.integer(0, values.length - 1)];
}

/** A shape that is broadcast to [sequences, heads, queries, keys], half of the time without leading sizes of 1. */
function broadcastShape(random: RandomValues, whole: readonly number[]): number[] {
  const sizes = whole.map((size) => (random.integer(0, 2) === 0 ? 1 : size));
  const leading = sizes.findIndex((size) => size > 1);
  return leading > 0 && random.integer(0, 1) === 1 ? sizes.slice(leading) : sizes;
}

function truths(random: RandomValues, whole: readonly number[], share: number): BooleanTensor {
  const shape = broadcastShape(random, whole);
  const data = new Uint8Array(shape.reduce((a, b) => a * b, 1));
  data.forEach((_, i) => (data[i] = random.uniform() < share ? 1 : 0));
  return { shape, data };
}

/** Sequences of random lengths, some of them empty, that make up so many queries and keys. */
function packed(random: RandomValues, queries: number, keys: number): Sequence[] {
  const cuts = (length: number) => [
    0,
    ...[random.integer(0, length), random.integer(0, length)].sort((a, b) => a - b),
    length,
  ];
  const [ofQueries, ofKeys] = [cuts(queries), cuts(keys)];
  return [0, 1, 2].map((i) => ({
    firstQuery: ofQueries[i],
    queries: ofQueries[i + 1] - ofQueries[i],
    firstKey: ofKeys[i],
    keys: ofKeys[i + 1] - ofKeys[i],
  }));
}

/** A problem with some features, drawn: sizes of bias and sink from below rounding to far beyond all scores. */
export function featuredProblem(
  random: RandomValues,
  features: readonly OracleFeature[],
  { heads, queries: rows, keys, ...sizes }: FeaturedSizes,
): Problem {
  const has = (feature: OracleFeature) => features.includes(feature);
  const format = choose<FormatName>(random, ['bf16', 'fp16', 'fp32', 'fp64']);
  const of = has('rows') ? 3 * rows + 2 : rows;
  const sequences = has('sequences') ? packed(random, of, keys) : undefined;
  const batch = sequences === undefined ? random.integer(1, 2) : 1;
  const most = (size: (one: Sequence) => number) => Math.max(...(sequences ?? []).map(size));
  const whole = [
    sequences?.length ?? batch,
    heads,
    sequences === undefined ? of : most((one) => one.queries),
    sequences === undefined ? keys : most((one) => one.keys),
  ];
  const size = choose(random, [2 ** -20, 1, 64, 1e4, 1e5]);
  const biasShape = broadcastShape(random, whole);
  const bias = () => (random.integer(0, 9) === 0 ? -Infinity : size * random.normal());
  const logit = () => choose(random, [-Infinity, -1e4, -3, 0, 2, 40, 900, 2e4, 1e13]);
  const selected = Array.from({ length: batch * heads }, () =>
    Array.from({ length: of }, (_, i) => i)
      .sort(() => random.uniform() - 0.5)
      .slice(0, rows)
      .sort((a, b) => a - b),
  );
  return filledProblem(
    { batch, heads, queries: rows, keys, format, ...sizes },
    () => choose(random, [0.5, 1, 4]) * random.normal(),
    {
      ...(has('softcap') ? { softcap: choose(random, [0.25, 5, 50]) } : {}),
      ...(has('causal') ? { causal: true } : {}),
      ...(has('bias')
        ? { bias: tensor(choose<FormatName>(random, ['bf16', 'fp32']), biasShape, bias) }
        : {}),
      ...(has('alibiSlopes')
        ? {
            alibiSlopes: tensor(
              'fp32',
              random.integer(0, 1) === 0 ? [heads] : [whole[0], heads],
              () => choose(random, [2 ** -8, 0.5, 3, 1024]),
            ),
          }
        : {}),
      ...(has('sink')
        ? {
            sink: {
              logits: tensor('fp32', [heads], logit),
              inLse: random.integer(0, 1) === 1,
            },
          }
        : {}),
      ...(has('dropout')
        ? (() => {
            const probability = choose(random, [0, 0.1, 0.5, 0.9]);
            return { dropout: { kept: truths(random, whole, 1 - probability), probability } };
          })()
        : {}),
      ...(has('mask') ? { mask: truths(random, whole, 0.6) } : {}),
      ...(sequences === undefined ? {} : { sequences }),
      ...(has('rows') ? { rows: { queries: Int32Array.from(selected.flat()), of } } : {}),
    },
  );
}
