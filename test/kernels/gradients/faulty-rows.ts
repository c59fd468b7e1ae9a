import { decodeTensor } from '../../../src/formats/index.js';
import { clipRanges, problemMask, problemShape, type Problem } from '../../../src/problem/index.js';
import { featureProblems, normalProblem } from '../features/index.js';
import { deltaOf, type GradientOf } from './backward-steps.js';
import { anywhere, faulty, tile, type FaultyBackward } from './fault.js';

const { fround } = Math;
const damage = 'damage';
const ofScores: readonly GradientOf[] = ['dq', 'dk'];
const all: readonly GradientOf[] = ['dq', 'dk', 'dv'];

/** Factors on the wrong gradient, or as often as they should not be. */
const scales: readonly FaultyBackward[] = [
  faulty(
    ['scale-missing-dq', damage, 'dQ is not multiplied by the scale'],
    ['dq'],
    anywhere,
    ({ scales }) => ({ scales: { ...scales, dq: 1 } }),
  ),
  faulty(
    ['scale-missing-dk', damage, 'dK is not multiplied by the scale'],
    ['dk'],
    anywhere,
    ({ scales }) => ({ scales: { ...scales, dk: 1 } }),
  ),
  faulty(
    ['scale-twice', damage, 'dQ is multiplied by the scale twice'],
    ['dq'],
    anywhere,
    ({ scales }) => ({ scales: { ...scales, dq: fround(scales.dq * scales.dq) } }),
  ),
  faulty(
    ['scale-on-dv', damage, 'dV is multiplied by the scale, and dK is not'],
    ['dk', 'dv'],
    anywhere,
    ({ scales }) => ({ scales: { dq: scales.dq, dk: 1, dv: scales.dk } }),
  ),
];

/** D and the LSE of something else. */
const statistics: readonly FaultyBackward[] = [
  faulty(['delta-missing', damage, 'dS = P dP'], ofScores, anywhere, () => ({
    delta: ({ out }) => new Float32Array(out.length),
  })),
  faulty(
    ['delta-of-next-row', damage, 'D of each row is that of the next'],
    ofScores,
    anywhere,
    ({ read }) => ({
      read: (stored) => {
        const { delta, logarithm } = read(stored);
        return { logarithm, delta: delta.map((_, i) => delta[(i + 1) % delta.length]) };
      },
    }),
  ),
  faulty(
    ['delta-of-stale-output', damage, 'D is made of the O of the head before'],
    ofScores,
    {
      ...anywhere,
      touches: (problem) => problemShape(problem).heads > 1,
    },
    (_, __, { queries, vDim }) => ({
      delta: ({ out, dout }) => {
        const ofHead = queries * vDim;
        const stale = out.map((x, i) => (i < ofHead ? x : out[i - ofHead]));
        return deltaOf({ out: stale, dout }, vDim);
      },
    }),
  ),
  faulty(
    ['capped-delta-missing', damage, 'dS = P dP (1 − tanh²) under a softcap'],
    ofScores,
    {
      touches: ({ softcap }) => softcap !== null,
      example: (random) => ({ ...anywhere.example(random), softcap: 2 }),
    },
    (_, { softcap }, { vDim }) => ({
      delta: (inputs) => (softcap === null ? deltaOf(inputs, vDim) : deltaOf(inputs, vDim).fill(0)),
    }),
  ),
  faulty(
    [
      'sink-left-out',
      damage,
      'the backward reads an LSE without the sink, so that its P is too large',
    ],
    all,
    {
      touches: ({ sink }) => sink !== undefined,
      example: (random) => ({
        ...anywhere.example(random),
        sink: {
          logits: { format: 'fp32', shape: [2], data: Float32Array.of(5, 3) },
          inLse: false,
        },
      }),
    },
    (_, { sink }, { queries, heads }) => ({
      read: ({ logarithm, delta }) => {
        if (sink === undefined) return { logarithm, delta };
        const sinks = decodeTensor(sink.logits);
        const ofKeys = (x: number, i: number) => {
          const head = Math.floor(i / queries) % heads;
          return x + Math.log1p(-Math.exp(Math.min(0, sinks[head] - x)));
        };
        return { delta, logarithm: logarithm.map(ofKeys) };
      },
    }),
  ),
  faulty(
    ['statistics-zero', damage, 'the first tile of queries of each head has zeros for LSE and D'],
    all,
    anywhere,
    (_, __, { queries }) => ({
      read: ({ logarithm, delta }) => {
        const rest = (values: Float32Array) => values.map((x, i) => (i % queries < tile ? 0 : x));
        return { logarithm: rest(logarithm), delta: rest(delta) };
      },
    }),
  ),
  faulty(
    ['statistics-of-next-row', damage, 'LSE and D of each row are those of the next'],
    all,
    anywhere,
    () => ({
      read: ({ logarithm, delta }) => {
        const next = (values: Float32Array) =>
          values.map((_, i) => values[(i + 1) % values.length]);
        return { logarithm: next(logarithm), delta: next(delta) };
      },
    }),
  ),
  faulty(
    ['lse-of-other-head', damage, 'the LSE of each head is that of the next, and D is right'],
    all,
    { touches: (problem) => problemShape(problem).heads > 1, example: anywhere.example },
    (_, __, { queries }) => ({
      read: ({ logarithm, delta }) => ({
        delta,
        logarithm: logarithm.map((__, i) => logarithm[(i + queries) % logarithm.length]),
      }),
    }),
  ),
  faulty(['lse-base-2', damage, 'the natural LSE is read as one of base 2'], all, anywhere, () => ({
    read: ({ logarithm, delta }) => ({ delta, logarithm: logarithm.map((x) => x * Math.LN2) }),
  })),
];

const causal = (problem: Problem) => problem.causal;
/** Whether top left and bottom right are the same corner, or of many sequences. */
const isSquare = (problem: Problem) => {
  const { queries, keys } = problemShape(problem);
  return problem.sequences !== undefined || queries === keys;
};
const causalExample = (random: Parameters<typeof normalProblem>[0]) => ({
  ...normalProblem(random, { batch: 1, queries: 90, keys: 140 }),
  causal: true,
});

/** The backward sees other keys, or other weights. */
const visibility: readonly FaultyBackward[] = [
  faulty(
    ['mask-top-left', damage, 'the backward aligns the causal mask at the top left'],
    all,
    {
      touches: (problem) => causal(problem) && !isSquare(problem),
      example: causalExample,
    },
    (_, problem, shape) => {
      if (!causal(problem) || isSquare(problem)) return {};
      const whole = problemMask({ ...problem, causal: false }, shape);
      return { ranges: (head, query) => clipRanges(whole.ranges(head, query), 0, query + 1) };
    },
  ),
  faulty(
    ['mask-off-by-one', damage, 'the backward sees one key beyond the last'],
    all,
    { touches: causal, example: causalExample },
    ({ ranges }, problem, { keys }) => ({
      ranges: (head, query) =>
        ranges(head, query).map(({ begin, end }, i, { length }) => ({
          begin,
          end: problem.causal && i === length - 1 ? Math.min(keys, end + 1) : end,
        })),
    }),
  ),
  faulty(
    ['mask-off-by-two', damage, 'the backward sees one key less, and that before it not either'],
    all,
    { touches: causal, example: causalExample },
    ({ ranges }, problem) => ({
      ranges: (head, query) => {
        const seen = ranges(head, query);
        return problem.causal ? clipRanges(seen, 0, (seen.at(-1)?.end ?? 2) - 2) : seen;
      },
    }),
  ),
  faulty(
    ['softcap-derivative-missing', damage, 'dS is not multiplied by 1 − tanh²'],
    ofScores,
    {
      touches: ({ softcap }) => softcap !== null,
      example: (random) => ({ ...normalProblem(random), softcap: 1 }),
    },
    () => ({ slope: () => 1 }),
  ),
  faulty(
    [
      'dropout-of-next-key',
      damage,
      'the backward keeps the weights beside those that the forward kept',
    ],
    all,
    { touches: ({ dropout }) => dropout !== undefined, example: featureProblems['dropout'] },
    ({ kept }, _, { keys }) => ({
      kept: kept && {
        ...kept,
        fill: (head, query, firstKey, target) => {
          const row = new Uint8Array(keys);
          kept.fill(head, query, 0, row);
          target.forEach((__, j) => (target[j] = row[(firstKey + j + 1) % keys]));
        },
      },
    }),
  ),
  faulty(
    ['dropout-not-scaled', damage, 'the backward does not divide by 1 − p what it keeps'],
    all,
    { touches: ({ dropout }) => dropout !== undefined, example: featureProblems['dropout'] },
    () => ({ upscale: 1 }),
  ),
];

/** Faults of scales, of what rows are normalised by, and of what they see. */
export const faultsOfRows = [...scales, ...statistics, ...visibility];
