import { problemShape, type Problem } from '../../../src/problem/index.js';
import { normalProblem } from '../features/index.js';
import { anywhere, faulty, inTiles, replacePart, tile, type FaultyBackward } from './fault.js';

const damage = 'damage';

/** A tile of keys in dQ, and of queries in dK and dV: lost, added twice, and that of the tile before. */
const tiles: readonly FaultyBackward[] = (
  [
    ['missing', 'is not added', () => 0],
    ['twice', 'is added twice', (own: number) => 2 * own],
    ['stale', 'is that of the tile before', (_: number, before: number) => before],
  ] as const
).flatMap(([what, does, element]) => [
  faulty(
    [`key-tile-${what}`, damage, `the second tile of keys ${does} in dQ`],
    ['dq'],
    inTiles,
    (_, problem, { queries, keys }) => ({
      factors: (matrix) =>
        matrix.of !== 'dq' || !inTiles.touches(problem)
          ? matrix.values
          : replacePart(
              matrix,
              keys,
              {
                rows: queries,
                columns: Math.min(tile, keys - tile),
                firstRow: 0,
                firstColumn: tile,
              },
              (row, key, old) => element(old[row * keys + key], old[row * keys + key - tile]),
            ),
    }),
  ),
  faulty(
    [`query-tile-${what}`, damage, `the second tile of queries ${does} in dK and dV`],
    ['dk', 'dv'],
    inTiles,
    (_, problem, { queries, keys }) => ({
      factors: (matrix) =>
        matrix.of === 'dq' || !inTiles.touches(problem)
          ? matrix.values
          : replacePart(
              matrix,
              keys,
              {
                rows: Math.min(tile, queries - tile),
                columns: keys,
                firstRow: tile,
                firstColumn: 0,
              },
              (row, key, old) => element(old[row * keys + key], old[(row - tile) * keys + key]),
            ),
    }),
  ),
]);

/** A tile of another size than 64: of keys in dQ, or of queries in dK and dV, in all heads. */
const otherTiles: readonly FaultyBackward[] = (
  [
    ['key', 96, 'missing', 0],
    ['key', 192, 'twice', 2],
    ['query', 32, 'missing', 0],
    ['query', 96, 'twice', 2],
  ] as const
).map(([axis, size, what, times]) => {
  const isOfKeys = axis === 'key';
  const count = (problem: Problem) => problemShape(problem)[isOfKeys ? 'keys' : 'queries'];
  return faulty(
    [
      `${axis}-tile-of-${size}-${what}`,
      damage,
      `the second ${size} ${isOfKeys ? 'keys are' : 'queries are'} ${what === 'twice' ? 'added twice' : 'not added'}`,
    ],
    isOfKeys ? ['dq'] : ['dk', 'dv'],
    { ...anywhere, touches: (problem) => count(problem) > size },
    (_, problem, { keys }) => ({
      factors: ({ of, values }) =>
        (of === 'dq') !== isOfKeys || count(problem) <= size
          ? values
          : values.map((x, i) => {
              const at = isOfKeys ? i % keys : Math.floor(i / keys);
              return at >= size && at < 2 * size ? times * x : x;
            }),
    }),
  );
});

/** P or dS of one tile turned over. */
const transposed: readonly FaultyBackward[] = (
  [
    ['dv', 'P'],
    ['dk', 'dS'],
  ] as const
).map(([wrong, what]) =>
  faulty(
    [
      `${what.toLowerCase()}-tile-transposed`,
      damage,
      `a tile of ${what} is transposed in ${wrong}`,
    ],
    [wrong],
    inTiles,
    (_, problem, { keys }) => ({
      factors: (matrix) =>
        matrix.of !== wrong || !inTiles.touches(problem)
          ? matrix.values
          : replacePart(
              matrix,
              keys,
              { rows: tile, columns: tile, firstRow: 0, firstColumn: 0 },
              (row, key, old) => old[key * keys + row],
            ),
    }),
  ),
);

const isGrouped = (problem: Problem) => problemShape(problem).groupSize > 1;

/** Shares of heads, and sums that are too short. */
const sums: readonly FaultyBackward[] = [
  faulty(
    ['one-head-of-group', damage, 'dK and dV add the first head of a group alone'],
    ['dk', 'dv'],
    { ...anywhere, touches: isGrouped },
    ({ heads }) => ({ heads: (kvHead) => heads(kvHead).slice(0, 1) }),
  ),
  faulty(
    ['heads-of-another-group', damage, 'dK and dV of kv head j add heads j, j + kv heads, …'],
    ['dk', 'dv'],
    {
      touches: (problem) => isGrouped(problem) && problemShape(problem).kvHeads > 1,
      example: (random) => normalProblem(random),
    },
    (_, __, { heads, kvHeads, groupSize }) => ({
      heads: (kvHead) => {
        const first = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads);
        return Array.from({ length: groupSize }, (___, i) => first + i * kvHeads);
      },
    }),
  ),
];

/** Sums that do not begin with 0. */
const leftOver: readonly FaultyBackward[] = [
  faulty(
    ['sums-of-last-launch', damage, 'dQ is added to that of a launch before'],
    ['dq'],
    anywhere,
    () => ({ stored: (of, values) => (of === 'dq' ? values.map((x) => 2 * x) : values) }),
  ),
  faulty(
    [
      'sums-of-last-tile',
      damage,
      'dK and dV of a tile of keys begin with those of the tile before',
    ],
    ['dk', 'dv'],
    {
      ...anywhere,
      touches: (problem) => problemShape(problem).keys > tile,
    },
    (_, __, { keys, qkDim, vDim }) => ({
      stored: (of, values) => {
        const columns = of === 'dk' ? qkDim : vDim;
        return values.map((x, i) => {
          const isFirst = of === 'dq' || i % (keys * columns) < tile * columns;
          return isFirst ? x : x + values[i - tile * columns];
        });
      },
    }),
  ),
  faulty(
    ['sums-of-heads-before', damage, 'dK of a head begins with the sums of all heads before it'],
    ['dk'],
    {
      touches: (problem) => {
        const { batch, kvHeads } = problemShape(problem);
        return batch * kvHeads > 1;
      },
      example: (random) => normalProblem(random),
    },
    (_, __, { keys, qkDim }) => ({
      stored: (of, values) => {
        if (of !== 'dk') return values;
        const sums = values.slice();
        for (let i = keys * qkDim; i < sums.length; i++) sums[i] += sums[i - keys * qkDim];
        return sums;
      },
    }),
  ),
];

/** Problems with sums of many tiles, of which one of 16 steps or in bf16 of fp16 is off by more than other roundings. */
const longSums = (sizes: Parameters<typeof normalProblem>[1]): typeof anywhere => ({
  ...anywhere,
  example: (random) => normalProblem(random, { batch: 1, heads: 1, kvHeads: 1, ...sizes }),
});
const ofFp16 = { heads: 2, kvHeads: 1, format: 'fp16' } as const;
const manyKeys = longSums({ ...ofFp16, queries: 70, keys: 600 });
const manyQueries = longSums({ ...ofFp16, queries: 300, keys: 70 });

/** Sums that are kept in 16 bits: of which gradients, in what, and after how many terms they are rounded. */
const narrow: readonly FaultyBackward[] = (
  [
    ['dq-in-16-bits', ['dq'], { format: 'bf16' }, anywhere],
    ['dk-dv-in-16-bits', ['dk', 'dv'], { format: 'bf16' }, anywhere],
    ['dq-tiles-in-16-bits', ['dq'], { format: 'bf16', terms: 64 }, manyKeys],
    [
      'dq-steps-in-16-bits',
      ['dq'],
      { format: 'bf16', terms: 16, order: 'descending' },
      longSums({ queries: 70, keys: 1000 }),
    ],
    [
      'dq-atomics-in-16-bits',
      ['dq'],
      { format: 'bf16', terms: 128, order: 'any', rows: 64 },
      longSums({ ...ofFp16, heads: 1, queries: 100, keys: 600 }),
    ],
    ['dq-many-atomics-in-16-bits', ['dq'], { format: 'bf16', terms: 32, order: 'any' }, manyKeys],
    ['dv-tiles-in-16-bits', ['dv'], { format: 'bf16', terms: 64 }, manyQueries],
    [
      'dk-dv-tiles-in-16-bits',
      ['dk', 'dv'],
      { format: 'bf16', terms: 32, order: 'descending' },
      manyQueries,
    ],
  ] as const
).map(([name, wrong, accumulator, where]) =>
  faulty(
    [
      name,
      damage,
      `${wrong.join(' and ')} rounded to ${accumulator.format} after every ${'terms' in accumulator ? `${accumulator.terms} terms` : 'addition'}`,
    ],
    wrong,
    { ...where, least: 2 },
    ({ accumulators }) => ({
      accumulators: {
        ...accumulators,
        ...Object.fromEntries(wrong.map((of) => [of, accumulator])),
      },
    }),
  ),
);

/** Faults of what gradients are summed of, and of the sums. */
export const faultsOfSums = [
  ...tiles,
  ...otherTiles,
  ...transposed,
  ...sums,
  ...leftOver,
  ...narrow,
];
