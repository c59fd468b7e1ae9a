import type { ProblemFeatures } from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { encodedTensor } from '../features/draw-features.js';
import { alignedSegments, booleanTensor, piecesOf } from '../features/draw-masks.js';
import { fillBroadcast, sequencesOf, type FeatureRequest } from '../features/feature-request.js';
import { storageKinds } from '../features/feature-kinds.js';
import type { PlainProblem } from '../plain-problem.js';
import { normalValues } from '../values.js';
import { everyRow, type Regime } from './regime.js';

/** Normal scores, of standard deviation 1. */
const draw: Regime['draw'] = ({ sizes, random }) => normalValues(sizes, random);

type DrawnFeatures = (request: Omit<FeatureRequest, 'sequences'>) => ProblemFeatures;

/** The least sizes of a bias, of a sink, and of ALiBi at the far end. */
const large = { bias: 1000, sink: 60, alibi: 100 };

/** The least ratio of the longest sequence's keys to those of all others. */
const hugeShare = 4;

function largest(values: Iterable<number>): number {
  let most = 0;
  for (const x of values) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  return most;
}

/** Keys of the first mask of a problem that no row of it sees, in runs of whole blocks. */
function hasEmptyTile({ features, sizes }: PlainProblem, blockKeys: number): boolean {
  const mask = features?.mask;
  const keys = mask?.shape.at(-1) ?? 1;
  if (mask === undefined || keys !== sizes.keys || keys <= blockKeys) return false;
  const rows = mask.data.length / keys;
  for (let first = 0; first + blockKeys <= keys; first += blockKeys) {
    let isSeen = false;
    for (let row = 0; row < rows && !isSeen; row++)
      isSeen = mask.data.subarray(row * keys + first, row * keys + first + blockKeys).includes(1);
    if (!isSeen) return true;
  }
  return false;
}

/** Whether a document ends one beside the edge of a block, and another one begins there. */
function hasBoundaryBesideTile({ features }: PlainProblem, blockKeys: number): boolean {
  const keys = features?.segments?.keys;
  if (keys === undefined) return false;
  const length = keys.shape.at(-1) ?? 0;
  for (let key = 1; key < length; key++) {
    const beside = (key % blockKeys) - blockKeys * Math.round((key % blockKeys) / blockKeys);
    if (Math.abs(beside) === 1 && keys.data[key] !== keys.data[key - 1]) return true;
  }
  return false;
}

const documentsBesideTiles: DrawnFeatures = ({ sizes, tiling: { blockKeys }, random }) => {
  const { queries, keys } = sizes;
  const tiles = Math.max(1, Math.floor((keys - 1) / blockKeys));
  const edge = random.integer(1, tiles) * blockKeys + random.sign();
  const ofKeys = piecesOf([Math.min(edge, keys - 1), keys], keys);
  return {
    segments: {
      queries: { shape: [queries], data: Int32Array.from(alignedSegments(ofKeys, queries)) },
      keys: { shape: [keys], data: Int32Array.from(ofKeys) },
    },
  };
};

const oneHugeSequence: DrawnFeatures = ({ sizes, random }) => {
  const { queries, keys } = sizes;
  const before = Math.floor(random.integer(0, 1) * Math.min(2, keys / (2 * hugeShare)));
  const behind = keys - random.integer(0, Math.floor(keys / (2 * hugeShare)));
  const ofQueries = [0, queries, queries].map((end) => Math.min(end, queries));
  return { sequences: sequencesOf(ofQueries, [before, behind, keys]) };
};

const emptyAmongOthers: DrawnFeatures = ({ sizes, random }) => {
  const { queries, keys } = sizes;
  const [query, key] = [random.integer(0, queries), random.integer(0, keys)];
  // Nothing at all, queries without keys, and keys without queries.
  return {
    sequences: sequencesOf(
      [0, query, query, queries, queries],
      [0, key, key, random.integer(0, 1) === 0 ? keys : key, keys],
    ),
  };
};

/** Distances of scores below 0, in nats: the nearest, the farthest, and the upper limit of all scores. */
const deep = { nearest: 1500, farthest: 9000, highest: -1000 };

/** Regimes of lengths and levels at their extremes, and of features at theirs. */
export const servedRegimes = {
  'deeply-negative': {
    description: 'every score of every row 1000 to 10,000 nats below zero',
    provokes:
      'a maximum that begins at a finite number, and scores that lose what tells them apart',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const level = Math.sqrt(random.integer(deep.nearest, deep.farthest) * Math.sqrt(qkDim));
      const entry = (i: number) => (i % qkDim === 0 ? level : random.normal());
      const values = normalValues(sizes, random);
      return {
        ...values,
        q: values.q.map((_, i) => entry(i)),
        k: values.k.map((_, i) => -entry(i)),
      };
    },
    holds: (plain) =>
      everyRow(plain, (raw, scale) => raw.every((x) => x < 0 && x * scale <= deep.highest)),
  },
  'half-filled-tiles': {
    description: 'keys that fill half of the last block: 64 beyond whole blocks of 128',
    provokes: 'a last block that is masked as a whole, or by the wrong half',
    sizes: ({ blockKeys }) => ({ queries: { min: 1 }, keys: { min: Math.ceil(blockKeys / 2) } }),
    tiled: true,
    lengths: ({ keys }, { blockKeys }, random) => {
      const half = Math.ceil(blockKeys / 2);
      const most = Math.floor((keys.max - half) / blockKeys);
      const least = Math.ceil((keys.min - half) / blockKeys);
      return most < least ? null : { keys: half + random.integer(least, most) * blockKeys };
    },
    draw,
    holds: ({ sizes: { keys } }, { blockKeys }) =>
      keys % blockKeys === Math.ceil(blockKeys / 2) % blockKeys,
  },
  'one-query': {
    description: 'one query: a row that is decoded',
    provokes: 'code of its own for few rows, heads packed into one tile, splits of the keys',
    sizes: () => ({ queries: { min: 1, max: 1 } }),
    draw,
    holds: ({ sizes: { queries } }) => queries === 1,
  },
  'one-key': {
    description: 'one key: O is its value, and the LSE its score',
    provokes: 'a block of which one column counts, and sums of one term',
    sizes: () => ({ keys: { min: 1, max: 1 } }),
    draw,
    holds: ({ sizes: { keys } }) => keys === 1,
  },
  'empty-tiles': {
    description: 'a mask that hides a whole block of keys from every row, and some rows altogether',
    provokes: 'a first block without keys, whose maximum is −∞, and blocks that are skipped',
    features: ['mask'],
    without: storageKinds,
    sizes: ({ blockKeys }) => ({ queries: { min: 1 }, keys: { min: blockKeys + 1 } }),
    tiled: true,
    draw,
    drawFeatures: ({ sizes, tiling: { blockKeys }, random }) => {
      const { queries, keys } = sizes;
      const hidden = random.integer(0, Math.max(0, Math.floor(keys / blockKeys) - 1));
      const emptyRow = random.integer(0, queries);
      return {
        mask: booleanTensor(
          [queries, keys],
          ({ query, key }) => Math.floor(key / blockKeys) !== hidden && query !== emptyRow,
        ),
      };
    },
    holds: (plain, { blockKeys }) => hasEmptyTile(plain, blockKeys),
  },
  'large-bias': {
    description: 'a bias of thousands, up or down, on some keys',
    provokes: 'a bias that is added after the maximum is taken, or in a short format',
    features: ['bias'],
    without: storageKinds,
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw,
    drawFeatures: ({ sizes, random }) => {
      const sign = random.sign();
      const values = fillBroadcast([1, sizes.keys], ({ key }) =>
        key === 0 || random.uniform() < 0.3
          ? sign * large.bias * (2 + 7 * random.uniform())
          : random.normal(),
      );
      return { bias: encodedTensor('fp32', [1, sizes.keys], values) };
    },
    holds: ({ features }) =>
      features?.bias !== undefined && largest(decodeTensor(features.bias)) >= large.bias,
  },
  'far-alibi': {
    description: 'ALiBi slopes that take the farthest keys 100 and more below the nearest',
    provokes: 'distances that are counted from the wrong end, and weights that vanish far away',
    features: ['alibi'],
    sizes: () => ({ queries: { min: 1 }, keys: { min: 8 } }),
    draw,
    drawFeatures: ({ sizes, random }) => {
      const { kvHeads, groupSize, keys } = sizes;
      const heads = kvHeads * groupSize;
      const values = fillBroadcast(
        [heads],
        () => (large.alibi / Math.max(keys - 1, 1)) * (1.5 + 2 * random.uniform()),
      );
      return { alibiSlopes: encodedTensor('fp32', [heads], values) };
    },
    holds: ({ features, sizes }) =>
      features?.alibiSlopes !== undefined &&
      largest(decodeTensor(features.alibiSlopes)) * (sizes.keys - 1) >= large.alibi,
  },
  'extreme-sinks': {
    description: 'sinks 60 and more above or below 0: all the weight, or none of it',
    provokes: 'a sink that joins the sum without its maximum: overflow, or a sum that stays 0',
    features: ['sink'],
    draw,
    drawFeatures: ({ sizes, random }) => {
      const heads = sizes.kvHeads * sizes.groupSize;
      const values = fillBroadcast(
        [heads],
        () => random.sign() * large.sink * (1.1 + random.uniform()),
      );
      return {
        sink: {
          logits: encodedTensor('fp32', [heads], values),
          inLse: random.integer(0, 1) === 0,
        },
      };
    },
    holds: ({ features }) =>
      features?.sink !== undefined && largest(decodeTensor(features.sink.logits)) >= large.sink,
  },
  'documents-beside-tiles': {
    description: 'a document that ends one key before or behind the edge of a block',
    provokes: 'boundaries that are rounded to blocks, and a block that two documents share',
    features: ['segments'],
    sizes: ({ blockKeys }) => ({ queries: { min: 1 }, keys: { min: blockKeys + 3 } }),
    tiled: true,
    draw,
    drawFeatures: documentsBesideTiles,
    holds: (plain, { blockKeys }) => hasBoundaryBesideTile(plain, blockKeys),
  },
  'one-huge-sequence': {
    description: 'packed: one sequence with most of the keys, others with a few or none',
    provokes: 'tiles and splits that are chosen by the longest, or by the mean',
    features: ['packed'],
    sizes: () => ({ queries: { min: 1 }, keys: { min: 16 } }),
    draw,
    drawFeatures: oneHugeSequence,
    holds: ({ features, sizes }) => {
      const keys = (features?.sequences ?? []).map((sequence) => sequence.keys);
      return keys.length > 1 && Math.max(...keys) * (1 + 1 / hugeShare) >= sizes.keys;
    },
  },
  'empty-sequences': {
    description: 'packed: sequences without queries, without keys and without both, among others',
    provokes:
      'a loop that runs once at least, rows that nobody writes, and tables read behind the end',
    features: ['packed'],
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw,
    drawFeatures: emptyAmongOthers,
    holds: ({ features }) => {
      const sequences = features?.sequences ?? [];
      const isEmpty = ({ queries, keys }: (typeof sequences)[number]) => queries * keys === 0;
      return sequences.some(isEmpty) && sequences.some(({ queries }) => queries > 0);
    },
  },
} satisfies Record<string, Regime>;
