import { type FormatName, formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { encodeProblem } from '../../../properties/problems/plain-problem.js';
import { randomValues } from '../../../properties/problems/values.js';
import { regimes, type RegimeName } from '../../../properties/problems/regimes/index.js';
import { scoreProblem, type ScoreRegimeName } from '../../../properties/problems/score-problem.js';
import { usualTiling } from '../../../properties/problems/regimes/regime.js';

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

/** The values of a request before they are rounded, and its sizes. */
function drawn(name: RegimeName, { queries, keys, dim, format, seed }: Request) {
  const sizes = { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim };
  const values = regimes[name].draw({
    sizes,
    format: formats[format],
    random: randomValues(seed),
    tiling: usualTiling,
    scaleKind: 'default',
  });
  return { sizes, values };
}

function encoded(
  { dim, format, causal }: Request,
  { sizes, values }: ReturnType<typeof drawn>,
): Problem {
  return encodeProblem({
    sizes,
    formats: { q: format, k: format, v: format },
    values,
    scale: 1 / Math.sqrt(dim),
    causal,
    window: null,
    softcap: null,
  });
}

const ofValues =
  (name: RegimeName): Draw =>
  (request) =>
    encoded(request, drawn(name, request));

/** Factors on V that leave sums of thousands of values barely within fp32, and V within its format. */
const nearOverflow: Partial<Record<FormatName, number>> = { bf16: 2 ** 108, fp16: 2 ** 13 };

const drawNearOverflow: Draw = (request) => {
  const { sizes, values } = drawn('normal', request);
  const v = values.v.map((x) => x * nearOverflow[request.format]!);
  return encoded(request, { sizes, values: { ...values, v } });
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
