import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../../formats/index.js';
import {
  broadcastStrides,
  keptWeights,
  type Problem,
  type ProblemShape,
} from '../../../problem/index.js';
import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';
import { type FeatureFault, featureHypothesis } from './feature-fault.js';

/** A tensor of fp64 with each element changed; larger ones than this are not copied for a hypothesis. */
const mostElements = 2 ** 24;

function mapped(tensor: Tensor, change: (x: number, index: number, all: Float64Array) => number) {
  const values = decodeTensor(tensor);
  return {
    format: 'fp64',
    shape: tensor.shape,
    data: encodeFromFloat64(
      formats.fp64,
      values.map((x, i) => change(x, i, values)),
    ),
  } as const satisfies Tensor;
}

/**
 * Makes a function from an element's index to that of the same element of the next head (or of the one before, by −1); null for a
 * tensor broadcast to all heads.
 */
function ofOtherHead(shape: readonly number[], by: number): ((index: number) => number) | null {
  const { head: stride } = broadcastStrides(shape);
  const heads = shape.at(-3) ?? 1;
  if (stride === 0 || heads < 2) return null;
  return (index) => {
    const head = Math.floor(index / stride) % heads;
    return index + (((head + by + heads) % heads) - head) * stride;
  };
}

function* biasFaults(problem: Problem): Generator<FeatureFault> {
  const { bias, scale } = problem;
  if (bias === undefined || bias.data.length > mostElements) return;
  const technique = 'scale-subtract';
  const factor = (id: string, statement: string, by: number): FeatureFault => {
    // 0 · −∞ is not what a kernel without a bias adds.
    const times = (x: number) => (by === 0 ? 0 : by * x);
    return { id, technique, statement, problem: { ...problem, bias: mapped(bias, times) } };
  };
  yield factor('bias-ignored', 'the bias is ignored', 0);
  yield factor('bias-twice', 'the bias is added twice', 2);
  yield factor('bias-sign', 'the bias is subtracted', -1);
  yield factor('bias-scaled', 'the bias is multiplied by the scale, like the scores', scale);
  yield factor('bias-base', 'the bias lacks the factor log2 e of scores in base 2', Math.LN2);
  yield factor('bias-base', 'the bias has the factor log2 e twice', Math.LOG2E);
  for (const [by, which] of [
    [1, 'the next head'],
    [-1, 'the head before'],
  ] as const) {
    const from = ofOtherHead(bias.shape, by);
    if (from === null) continue;
    yield {
      id: 'bias-of-other-head',
      technique,
      statement: `the bias is that of ${which}`,
      problem: { ...problem, bias: mapped(bias, (_, i, all) => all[from(i)]) },
    };
  }
  const { key: keyStride } = broadcastStrides(bias.shape);
  if (keyStride === 0) return;
  const keys = bias.shape.at(-1)!;
  for (const by of [1, -1])
    yield {
      id: 'bias-shifted',
      technique,
      statement: `the bias of each key is that of the key ${by > 0 ? 'behind' : 'before'} it`,
      problem: {
        ...problem,
        bias: mapped(bias, (x, i, all) => (i % keys === (by > 0 ? keys - 1 : 0) ? x : all[i + by])),
      },
    };
}

function* alibiFaults(problem: Problem, shape: ProblemShape): Generator<FeatureFault> {
  const { alibiSlopes: slopes, scale } = problem;
  if (slopes === undefined) return;
  const technique = 'scale-subtract';
  const { heads } = shape;
  const changed = (
    id: string,
    statement: string,
    change: (x: number, index: number, all: Float64Array) => number,
  ): FeatureFault => ({
    id,
    technique,
    statement,
    problem: { ...problem, alibiSlopes: mapped(slopes, change) },
  });
  yield changed('alibi-ignored', 'ALiBi is ignored', () => 0);
  yield changed('alibi-sign', 'ALiBi favours distant keys: its sign is lost', (x) => -x);
  yield changed('alibi-twice', 'ALiBi is applied twice', (x) => 2 * x);
  yield changed('alibi-scaled', "ALiBi's slopes are multiplied by the scale", (x) => scale * x);
  yield changed(
    'alibi-base',
    "ALiBi's slopes lack the factor log2 e of scores in base 2",
    (x) => x * Math.LN2,
  );
  for (const [by, which] of heads < 2
    ? []
    : ([
        [1, 'the next head'],
        [-1, 'the head before'],
      ] as const)) {
    const from = (i: number) => i - (i % heads) + (((i % heads) + by + heads) % heads);
    yield changed(
      'alibi-of-other-head',
      `ALiBi's slope is that of ${which}`,
      (_, i, all) => all[from(i)],
    );
  }
}

function* sinkFaults(problem: Problem, { heads }: ProblemShape): Generator<FeatureFault> {
  const { sink, scale } = problem;
  if (sink === undefined) return;
  const technique = 'row-sum';
  const { logits, inLse } = sink;
  const changed = (
    id: string,
    statement: string,
    change: (x: number, index: number, all: Float64Array) => number,
    more: Partial<typeof sink> = {},
  ): FeatureFault => ({
    id,
    technique,
    statement,
    problem: { ...problem, sink: { logits: mapped(logits, change), inLse, ...more } },
  });
  yield changed('sink-ignored', 'the sink is left out of the row sum', () => -Infinity);
  yield changed(
    'sink-in-lse',
    inLse
      ? 'the sink is in the row sum, but not in the LSE'
      : 'the sink is in the LSE, which it should not be',
    (x) => x,
    { inLse: !inLse },
  );
  yield changed('sink-twice', 'the sink is in the row sum twice', (x) => x + Math.LN2);
  for (const parts of [3, 4, 5, 8])
    yield changed(
      'sink-twice',
      `the sink is in the row sum ${parts} times: once for each split`,
      (x) => x + Math.log(parts),
    );
  yield changed('sink-scaled', "the sink's logit is multiplied by the scale", (x) => scale * x);
  yield changed(
    'sink-base',
    "the sink's logit lacks the factor log2 e of scores in base 2",
    (x) => x * Math.LN2,
  );
  if (heads < 2) return;
  for (const [by, which] of [
    [1, 'the next head'],
    [-1, 'the head before'],
  ] as const)
    yield changed(
      'sink-of-other-head',
      `the sink is that of ${which}`,
      (_, i, all) => all[(i + by + heads) % heads],
    );
}

function* dropoutFaults(problem: Problem): Generator<FeatureFault> {
  const { dropout } = problem;
  if (dropout === undefined) return;
  const technique = 'pv-accumulate';
  const { kept, probability } = dropout;
  yield {
    id: 'dropout-ignored',
    technique,
    statement: 'dropout is ignored',
    problem: {
      ...problem,
      dropout: { kept: { shape: [1], data: Uint8Array.of(1) }, probability: 0 },
    },
  };
  yield {
    id: 'dropout-not-rescaled',
    technique,
    statement: 'the weights that dropout keeps are not divided by 1 − p',
    problem: { ...problem, dropout: { kept, probability: 0 } },
  };
  if (kept.data.length > mostElements) return;
  yield {
    id: 'dropout-inverted',
    technique,
    statement: 'dropout keeps what it should drop',
    problem: {
      ...problem,
      dropout: { kept: { ...kept, data: kept.data.map((x) => (x === 0 ? 1 : 0)) }, probability },
    },
  };
}

/** A softcap around the sum of score and bias, not around the score alone. */
const capOfSum: HypothesisFamily = function* ({ reader }) {
  const { softcap, bias, alibiSlopes } = reader.problem;
  if (softcap === null || (bias === undefined && alibiSlopes === undefined)) return;
  const plain = reader.as({ ...reader.problem, softcap: null });
  yield {
    id: 'bias-before-softcap',
    technique: 'scale-subtract',
    statement: 'the bias is added before the softcap, not behind it',
    predict: (row) => {
      const dots = reader.dots(row.row, row.kv);
      const scores = reader.maskedScores(
        row.row,
        row.ranges,
        (key) => softcap * Math.tanh(plain.score(dots[key], row.row, key) / softcap),
      );
      return predictWeighted(row, softmaxRow(scores, reader.valuesOf(row.row, row.kv)));
    },
  };
};

/** ALiBi that counts distances from a diagonal through the first key, where the mask may be right. */
const alibiAlignment: HypothesisFamily = function* ({ reader, shape }) {
  const { alibiSlopes, ...others } = reader.problem;
  if (alibiSlopes === undefined) return;
  const slopes = decodeTensor(alibiSlopes);
  const perSequence = alibiSlopes.shape.length === 2 ? shape.heads : 0;
  const plain = reader.as(others);
  yield {
    id: 'alibi-aligned-top-left',
    technique: 'scale-subtract',
    statement: "ALiBi's distances are aligned to the top left, not to the bottom right",
    predict: (row) => {
      const { sequence, head, query, queries, keys, firstKey } = reader.place(row.row);
      if (queries === keys) return row.correct;
      const slope = slopes[sequence * perSequence + head];
      const dots = reader.dots(row.row, row.kv);
      const scores = reader.maskedScores(
        row.row,
        row.ranges,
        (key) => plain.score(dots[key], row.row, key) - slope * Math.abs(query + firstKey - key),
      );
      return predictWeighted(row, softmaxRow(scores, reader.valuesOf(row.row, row.kv)));
    },
  };
};

/** Dropped weights that are missing in the row sum too, with the effects on the factor and the LSE. */
const dropoutInSum: HypothesisFamily = function* ({ reader, shape, input }) {
  const { dropout } = reader.problem;
  const kept = keptWeights(reader.problem, shape);
  if (dropout === undefined || kept === null) return;
  const { share } = kept;
  const ofKept = (lse: number) => lse;
  const ofAll = (_: number, row: SampleRow) => row.denominator;
  const notInLse = ', but not in the LSE';
  const variants: readonly (readonly [
    factor: number,
    words: string,
    lse: (lse: number, row: SampleRow) => number,
  ])[] = [
    [1 / share, '', ofKept],
    [1 / share, notInLse, ofAll],
    [1, ', and divided by 1 − p', (lse) => lse - Math.log(share)],
    [1, ', and divided by 1 − p, which the LSE lacks', ofKept],
    [1, `, and divided by 1 − p${notInLse}`, ofAll],
  ];
  const known = new Set<number>();
  for (const [factor, words, lseOf] of variants) {
    // Without an LSE the factor alone tells variants apart.
    if (input.outputs.lse === null && known.has(factor)) continue;
    known.add(factor);
    yield {
      id: 'dropout-before-row-sum',
      technique: 'row-sum',
      statement: `dropped weights are missing in the row sum, too${words}`,
      predict: (row) => {
        const keeps = new Uint8Array(shape.keys);
        kept.fill(row.head, row.query, 0, keeps);
        const scores = reader
          .scores(row.row)
          .map((s, j) => (j < shape.keys && keeps[j] === 0 ? -Infinity : s));
        const { weights, values, lse } = softmaxRow(scores, reader.values(row.kv));
        return predictWeighted(row, {
          weights: weights.map((w) => w * factor),
          values,
          lse: lseOf(lse, row),
        });
      },
    };
  }
};

/** Faults in the addends of scores, of the row sum and of the weights: bias, ALiBi, sinks, dropout. */
export const scoreTermHypotheses: HypothesisFamily = function* (context) {
  const { shape, reader } = context;
  const { problem } = reader;
  const faults = [
    ...biasFaults(problem),
    ...alibiFaults(problem, shape),
    ...sinkFaults(problem, shape),
    ...dropoutFaults(problem),
  ];
  for (const fault of faults) yield featureHypothesis(context, fault);
  yield* capOfSum(context);
  yield* alibiAlignment(context);
  yield* dropoutInSum(context);
};
