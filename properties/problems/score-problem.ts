import { formats, type FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { encodeProblem } from './plain-problem.js';
import {
  besideThreshold,
  regimes,
  usualTiling,
  type Regime,
  type RegimeName,
} from './regimes/index.js';
import { randomValues } from './values.js';

/** Arguments for a problem in a regime of scores: one head, no mask. */
export interface ScoreProblemRequest {
  readonly queries: number;
  readonly keys: number;
  /** Head dimension of Q, K and V. */
  readonly dim: number;
  readonly format: FormatName;
  /** Seed of the problem, the same for the same seed. */
  readonly seed: number;
  /** log2 of the growth of the maximum from block to block around which the regimes of steps stay. */
  readonly step?: number;
}

/**
 * Regimes of scores, by the spread of a row's scores and by the growth of its maximum from block to
 * block of 128 keys, which FlashAttention-4 visits from the last to the first.
 */
const scoreRegimes = {
  'normal-1': 'normal',
  'normal-4': 'normal-4',
  'normal-16': 'normal-16',
  sink: 'sink',
  'student-t': 'student-t',
  ascending: 'ascending',
  descending: 'descending',
  'steps-below': 'steps-below',
  'steps-above': 'steps-above',
  'positive-values': 'positive-values',
  'constant-keys': 'constant-keys',
} satisfies Record<string, RegimeName>;

/** The name of a regime of scores. */
export type ScoreRegimeName = keyof typeof scoreRegimes;

/** Every regime of scores. */
export const scoreRegimeNames = Object.keys(scoreRegimes) as ScoreRegimeName[];

function regimeOf(name: ScoreRegimeName): Regime {
  return regimes[scoreRegimes[name]];
}

/** The appearance of the scores of a regime, in nats, and whether they depend on the request's `step`. */
export function scoreRegime(name: ScoreRegimeName): {
  readonly description: string;
  readonly hasSteps: boolean;
} {
  const { description, tiled = false } = regimeOf(name);
  return { description, hasSteps: tiled };
}

/**
 * A problem of one head in a regime of scores, the same for the same request; values are rounded to the
 * format, to nearest even, those beyond its largest finite number to that. Maxima that step from block
 * to block grow from the last block to the first.
 * @throws RequestError for an unknown regime, fewer than 10 dimensions in a regime of steps, and a step
 * that is no positive multiple of 1/16
 */
export function scoreProblem(name: ScoreRegimeName, request: ScoreProblemRequest): Problem {
  if (!Object.hasOwn(scoreRegimes, name))
    throw new RequestError(
      `no regime of scores ${JSON.stringify(name)}; choose from ${scoreRegimeNames.join(', ')}`,
    );
  const { queries, keys, dim, format, seed, step = usualTiling.threshold } = request;
  if (!(step > besideThreshold && Number.isInteger(step / besideThreshold)))
    throw new RequestError(
      `step is ${step}; give a multiple of ${besideThreshold} above ${besideThreshold}, such as ${usualTiling.threshold}`,
    );
  const sizes = { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim };
  const { scale = 1 / Math.sqrt(dim), ...values } = regimeOf(name).draw({
    sizes,
    format: formats[format],
    random: randomValues(seed),
    scaleKind: 'default',
    tiling: { ...usualTiling, threshold: step, order: 'last-to-first' },
  });
  return encodeProblem({
    sizes,
    formats: { q: format, k: format, v: format },
    values,
    scale,
    causal: false,
    window: null,
    softcap: null,
  });
}
