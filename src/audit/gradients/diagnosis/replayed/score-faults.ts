import {
  problemShape,
  rowPlaces,
  scoreLaw,
  type Problem,
  type ProblemShape,
  type ScoreAddend,
} from '../../../../problem/index.js';
import { decodeTensor } from '../../../../formats/index.js';
import { without } from './mask-faults.js';
import type { ReplayedFault } from './replayed-fault.js';

const inBackward = 'in the backward pass';

/** Softcaps that a backward pass leaves out, or differentiates in a wrong way. */
function* softcapFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  if (problem.softcap === null) return;
  yield {
    id: 'softcap-derivative-missing',
    sentence: "the softcap's derivative 1 − tanh² is missing in dS",
    change: { slopePower: 0 },
  };
  yield {
    id: 'softcap-derivative-twice',
    sentence: "the softcap's derivative 1 − tanh² is applied twice in dS",
    change: { slopePower: 2 },
  };
  yield {
    id: 'softcap-missing',
    sentence: `the softcap is left out ${inBackward}`,
    change: { law: scoreLaw({ ...problem, softcap: null }, shape) },
  };
  yield {
    id: 'softcap-missing',
    sentence: `the softcap and its derivative are left out ${inBackward}`,
    change: { law: scoreLaw({ ...problem, softcap: null }, shape), slopePower: 0 },
  };
}

/** An addend of another head, counted within the batch. */
function ofHead(addend: ScoreAddend, heads: number, other: (head: number) => number): ScoreAddend {
  return (head, ...rest) => addend(head - (head % heads) + other(head % heads), ...rest);
}

/** Other heads whose bias or slope may be read. */
function otherHeads(heads: number) {
  return heads === 1
    ? []
    : ([
        ['of the next head', (head: number) => (head + 1) % heads],
        ['of the head before', (head: number) => (head + heads - 1) % heads],
        ['of the first head', () => 0],
      ] as const);
}

/** Biases that a backward pass leaves out, scales or reads for another head or query. */
function* biasFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  const { bias, scale } = problem;
  if (bias === undefined) return;
  const own = scoreLaw(problem, shape);
  yield {
    id: 'bias-missing',
    sentence: `the bias is left out of the scores ${inBackward}`,
    change: { law: scoreLaw(without(problem, ['bias']), shape) },
  };
  const times = (factor: number): Problem => ({
    ...problem,
    bias: { format: 'fp64', shape: bias.shape, data: decodeTensor(bias).map((x) => x * factor) },
  });
  for (const [factor, words] of [
    [scale, 'is multiplied by the scale'],
    [1 / scale, 'is divided by the scale'],
    [Math.LN2, 'is taken for one in base 2'],
    [-1, 'is subtracted from the scores'],
  ] as const)
    yield {
      id: factor === -1 ? 'bias-sign' : 'bias-scaled',
      sentence: `the bias ${words} ${inBackward}`,
      change: { law: scoreLaw(times(factor), shape) },
    };
  const { addend } = own;
  if (addend === null || problem.alibiSlopes !== undefined) return;
  for (const [words, other] of otherHeads(shape.heads))
    yield {
      id: 'bias-of-other-head',
      sentence: `the bias is that ${words} ${inBackward}`,
      change: { law: { ...own, addend: ofHead(addend, shape.heads, other) } },
    };
}

/** ALiBi that a backward pass leaves out, or measures from elsewhere. */
function* alibiFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  const { alibiSlopes } = problem;
  if (alibiSlopes === undefined) return;
  const own = scoreLaw(problem, shape);
  const rest = scoreLaw(without(problem, ['alibiSlopes']), shape);
  yield {
    id: 'alibi-missing',
    sentence: `ALiBi's slopes are left out of the scores ${inBackward}`,
    change: { law: rest },
  };
  const placeOf = rowPlaces(problem, shape);
  const slopes = decodeTensor(alibiSlopes);
  const perSequence = alibiSlopes.shape.length === 2 ? shape.heads : 0;
  const by =
    (distance: (query: number, key: number, corner: number) => number): ScoreAddend =>
    (head, query, firstKey, target) => {
      if (rest.addend === null) target.fill(0);
      else rest.addend(head, query, firstKey, target);
      const place = placeOf(head, query);
      const slope = slopes[place.sequence * perSequence + place.head];
      const corner = place.keys - place.queries;
      for (let j = 0; j < target.length; j++)
        target[j] -= slope * distance(place.query, firstKey + j - place.firstKey, corner);
    };
  for (const [id, words, distance] of [
    [
      'alibi-top-left',
      'is measured from the first query and key, not from the last',
      (query, key) => Math.abs(query - key),
    ],
    ['alibi-sign', 'has the other sign', (query, key, corner) => -Math.abs(query + corner - key)],
    [
      'alibi-signed',
      'is of the signed distance, not of its size',
      (query, key, corner) => query + corner - key,
    ],
    [
      'alibi-off-by-one',
      'is measured from the key behind',
      (query, key, corner) => Math.abs(query + corner + 1 - key),
    ],
  ] as const satisfies readonly (readonly [
    string,
    string,
    (query: number, key: number, corner: number) => number,
  ])[])
    yield {
      id,
      sentence: `ALiBi's distance ${words} ${inBackward}`,
      change: { law: { ...own, addend: by(distance) } },
    };
  const { addend } = own;
  if (addend === null || problem.bias !== undefined) return;
  for (const [words, other] of otherHeads(shape.heads))
    yield {
      id: 'alibi-of-other-head',
      sentence: `ALiBi's slope is that ${words} ${inBackward}`,
      change: { law: { ...own, addend: ofHead(addend, shape.heads, other) } },
    };
}

/** Scores with a wrong scale where P is made again. dQ and dK have the right scale. */
function* scaleFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  const { scale } = problem;
  const usual = 1 / Math.sqrt(shape.qkDim);
  const own = scoreLaw(problem, shape);
  for (const [other, words] of [
    [1, 'are not scaled'],
    [scale * scale, 'are scaled twice'],
    [usual, 'have the usual scale 1/√d'],
    [scale * Math.LN2, 'are taken for those in base 2'],
    [scale * Math.LOG2E, 'are multiplied by log2 e twice'],
  ] as const) {
    if (Math.abs(other / scale - 1) < 2 ** -10) continue;
    yield {
      id: 'score-scale',
      sentence: `scores ${words} as the backward pass makes P again`,
      change: { law: { ...own, scale: other }, outerScale: scale },
    };
  }
}

/** Backward passes whose scores are not those of the forward, or that differentiate them in a wrong way. */
export function* scoreFaults(
  problem: Problem,
  shape: ProblemShape = problemShape(problem),
): Generator<ReplayedFault> {
  yield* softcapFaults(problem, shape);
  yield* biasFaults(problem, shape);
  yield* alibiFaults(problem, shape);
  yield* scaleFaults(problem, shape);
}
