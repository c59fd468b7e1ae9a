import {
  scoreLaw,
  type KeptWeights,
  type Problem,
  type ProblemShape,
  type ScoreAddend,
} from '../../../../src/problem/index.js';
import { decodeTensor, type Tensor } from '../../../../src/formats/index.js';
import {
  changedProblem,
  inRows,
  type PlantedBug,
  type ProblemChange,
  type StepChange,
} from './planted-bug.js';

/** Scores with what another problem adds. */
const addendOf =
  (change: (problem: Problem) => ProblemChange): StepChange =>
  (_, problem, shape) => ({
    addend: scoreLaw(changedProblem(problem, change(problem)), shape).addend,
  });

/** ALiBi by another distance. */
const alibi =
  (distance: (query: number, key: number, shape: ProblemShape) => number): StepChange =>
  (_, problem, shape) => {
    const slopes = decodeTensor(problem.alibiSlopes!);
    const addend: ScoreAddend = (head, query, firstKey, target) => {
      for (let j = 0; j < target.length; j++)
        target[j] = -slopes[head % shape.heads] * distance(query, firstKey + j, shape);
    };
    return { addend };
  };

/** A tensor of heads each of which is the next. */
function nextHeads(tensor: Tensor, heads: number): Tensor {
  const values = decodeTensor(tensor);
  const size = values.length / heads;
  const data = Float64Array.from(values, (_, i) => values[(i + size) % values.length]);
  return { format: 'fp64', shape: tensor.shape, data };
}

const scores: Readonly<Record<string, PlantedBug>> = {
  'the bias left out': {
    on: 'bias',
    change: addendOf(() => ({ bias: undefined })),
    causes: ['bias-missing'],
  },
  'the bias left out in one head': {
    on: 'bias',
    change: inRows(
      ({ head }) => head === 2,
      addendOf(() => ({ bias: undefined })),
    ),
    causes: ['bias-missing'],
    place: 'head 2',
  },
  'the bias of the next head': {
    on: 'bias',
    change: addendOf(({ bias }) => ({ bias: nextHeads(bias!, 3) })),
    causes: ['bias-of-other-head'],
  },
  'the bias times the scale': {
    on: 'bias',
    change: addendOf(({ bias, scale }) => ({
      bias: {
        format: 'fp64',
        shape: bias!.shape,
        data: decodeTensor(bias!).map((x) => x * scale),
      },
    })),
    causes: ['bias-scaled'],
  },
  "ALiBi's slopes left out": {
    on: 'alibi',
    change: addendOf(() => ({ alibiSlopes: undefined })),
    causes: ['alibi-missing'],
  },
  'ALiBi aligned at the top left': {
    on: 'alibi',
    change: alibi((query, key) => Math.abs(query - key)),
    causes: ['alibi-top-left'],
  },
  'ALiBi with the other sign': {
    on: 'alibi',
    change: alibi((query, key, { queries, keys }) => -Math.abs(query + keys - queries - key)),
    causes: ['alibi-sign'],
  },
  "ALiBi with the next head's slope": {
    on: 'alibi',
    change: addendOf(({ alibiSlopes }) => ({ alibiSlopes: nextHeads(alibiSlopes!, 2) })),
    causes: ['alibi-of-other-head'],
  },
  "no softcap's derivative": {
    on: 'softcap',
    change: () => ({ slope: () => 1 }),
    causes: ['softcap-derivative-missing'],
  },
  "the softcap's derivative twice": {
    on: 'softcap',
    change: () => ({ slope: (tanh) => (1 - tanh * tanh) ** 2 }),
    causes: ['softcap-derivative-twice'],
  },
  'the usual scale in P': {
    on: 'unusual scale',
    change: () => ({ scoreScale: 0.25 }),
    causes: ['score-scale'],
  },
  'no scale in P': {
    on: 'grouped',
    change: () => ({ scoreScale: 1 }),
    causes: ['score-scale'],
  },
  'the scale twice in P': {
    on: 'causal',
    change: () => ({ scoreScale: 0.0625 }),
    causes: ['score-scale'],
  },
};

/** Factors of gradients. */
const scales: Readonly<Record<string, PlantedBug>> = {
  'no scale in dQ and dK': {
    change: ({ scales: { dv } }) => ({ scales: { dq: 1, dk: 1, dv } }),
    causes: ['scale-missing'],
  },
  'no scale in dK, in fp32': {
    on: 'fp32',
    change: ({ scales: own }) => ({ scales: { ...own, dk: 1 } }),
    causes: ['scale-missing'],
  },
  'no scale in dK, grouped': {
    on: 'grouped',
    change: ({ scales: own }) => ({ scales: { ...own, dk: 1 } }),
    causes: ['scale-missing'],
  },
  'the scale twice in dQ': {
    on: 'packed',
    change: ({ scales: own }) => ({ scales: { ...own, dq: own.dq * own.dq } }),
    causes: ['scale-twice'],
  },
  'the scale on dV': {
    on: 'sinks',
    change: ({ scales: own }) => ({ scales: { ...own, dk: 1, dv: own.dk } }),
    causes: ['scale-moved'],
  },
  'log2 e kept in dK': {
    on: 'causal',
    change: ({ scales: own }) => ({ scales: { ...own, dk: own.dk * Math.LOG2E } }),
    causes: ['log2e-kept'],
  },
  'the sign of dK': {
    on: 'dropout',
    change: ({ scales: own }) => ({ scales: { ...own, dk: -own.dk } }),
    causes: ['sign'],
  },
  'dV 1 % large': {
    on: 'alibi',
    change: ({ scales: own }) => ({ scales: { ...own, dv: 1.01 } }),
    causes: ['factor'],
  },
  'dQ 2 % small in one head': {
    change: inRows(
      ({ sequence, head }) => sequence === 1 && head === 3,
      () => ({
        factors: ({ of, values }) => (of === 'dq' ? values.map((x) => 0.98 * x) : values),
      }),
    ),
    causes: ['factor'],
    place: 'sequence 1, head 3',
  },
  'no scale in dQ of one sequence': {
    on: 'packed',
    change: inRows(
      ({ sequence }) => sequence === 1,
      () => ({
        factors: ({ of, values }) => (of === 'dq' ? values.map((x) => 4 * x) : values),
      }),
    ),
    causes: ['scale-missing'],
    place: 'sequence 1',
  },
};

/** Dropout of other weights. */
const droppedBy =
  (by: { readonly head?: number; readonly query?: number; readonly key?: number }): StepChange =>
  ({ kept }, _, { heads, queries, keys, batch }) => {
    const { share, fill } = kept!;
    const row = new Uint8Array(keys);
    const within = (x: number, size: number) => (x + size) % size;
    const moved: KeptWeights = {
      share,
      fill: (head, query, firstKey, target) => {
        fill(
          within(head + (by.head ?? 0), batch * heads),
          within(query + (by.query ?? 0), queries),
          0,
          row,
        );
        for (let j = 0; j < target.length; j++)
          target[j] = row[within(firstKey + j + (by.key ?? 0), keys)];
      },
    };
    return { kept: moved };
  };

const dropout: Readonly<Record<string, PlantedBug>> = {
  'no dropout': {
    on: 'dropout',
    change: () => ({ kept: null, upscale: 1 }),
    causes: ['dropout-missing'],
  },
  'no dropout in dP': {
    on: 'dropout',
    change: () => ({ dropsDp: () => false }),
    causes: ['dropout-missing'],
  },
  'no dropout in the P of dV': {
    on: 'dropout',
    change: () => ({ dropsP: () => false }),
    causes: ['dropout-missing'],
  },
  "no dropout's factor": {
    on: 'dropout',
    change: () => ({ upscale: 1 }),
    causes: ['dropout-factor'],
  },
  'dropout of the next key': {
    on: 'dropout',
    change: droppedBy({ key: 1 }),
    causes: ['dropout-of-another'],
  },
  'dropout of the next head': {
    on: 'dropout',
    change: droppedBy({ head: 1 }),
    causes: ['dropout-of-another'],
  },
  'no dropout in dP of one head': {
    on: 'dropout',
    change: inRows(
      ({ head }) => head === 1,
      () => ({ dropsDp: () => false }),
    ),
    causes: ['dropout-missing'],
    place: 'head 1',
  },
};

/** Bugs of scores, of scales and of dropout. */
export const scoreBugs = { ...scores, ...scales, ...dropout };
