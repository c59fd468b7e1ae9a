import type { FormatName } from '../../../src/formats/index.js';
import { formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem.js';
import { encodeProblem } from '../../../properties/plain-problem.js';
import { randomValues } from '../../../properties/random-values.js';
import { scoreProblem, type ScoreRegimeName } from '../../../properties/score-regimes.js';
import { drawValues, type RegimeName } from '../../../properties/value-regimes.js';

/** One head of a problem. */
export interface HeadShape {
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly causal: boolean;
}

interface Request extends HeadShape {
  readonly format: FormatName;
  readonly seed: number;
}

type Draw = (request: Request) => Problem;

const ofScores =
  (name: ScoreRegimeName): Draw =>
  ({ causal, ...request }) => ({ ...scoreProblem(name, request), causal });

function encoded(
  { queries, keys, dim, format, causal }: Request,
  values: ReturnType<typeof drawValues>,
): Problem {
  return encodeProblem({
    sizes: { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim },
    formats: { q: format, k: format, v: format },
    ...{ values, scale: 1 / Math.sqrt(dim), causal, window: null, softcap: null },
  });
}

const ofValues =
  (name: RegimeName): Draw =>
  (request) => {
    const { queries, keys, dim, format, seed } = request;
    const sizes = { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim };
    return encoded(request, drawValues(name, sizes, formats[format], randomValues(seed)));
  };

/** Factors on V that leave sums of thousands of values barely within fp32, and V within its format. */
const nearOverflow: Partial<Record<FormatName, number>> = { bf16: 2 ** 108, fp16: 2 ** 13 };

const drawNearOverflow: Draw = (request) => {
  const { queries, keys, dim, format, seed } = request;
  const sizes = { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim };
  const values = drawValues('normal', sizes, formats[format], randomValues(seed));
  return encoded(request, { ...values, v: values.v.map((x) => x * nearOverflow[format]!) });
};

/** Problems of one head in which tightness is measured, by regime. */
export const tightnessRegimes = {
  normal: ofScores('normal-1'),
  'large logits': ofScores('normal-16'),
  sink: ofScores('sink'),
  'student-t': ofScores('student-t'),
  ascending: ofScores('ascending'),
  descending: ofScores('descending'),
  'steps below the threshold': ofScores('steps-below'),
  'steps above the threshold': ofScores('steps-above'),
  'constant keys': ofScores('constant-keys'),
  'one-signed V': ofScores('positive-values'),
  'outlier channel': ofValues('outlier-channel'),
  'cancelling values': ofValues('cancelling-values'),
  tiny: ofValues('tiny'),
  'near overflow': drawNearOverflow,
} satisfies Record<string, Draw>;

export type TightnessRegime = keyof typeof tightnessRegimes;
