import type { FormatName } from '../src/formats/index.js';
import type { Problem } from '../src/problem.js';
import { RequestError } from '../src/request-error.js';
import { encodeProblem } from './plain-problem.js';
import { randomValues, type RandomValues } from './random-values.js';
import type { ProblemValues } from './value-regimes.js';

/** What a problem in a regime of scores is made of: one head, no mask. */
export interface ScoreProblemRequest {
  readonly queries: number;
  readonly keys: number;
  /** Head dimension of Q, K and V. */
  readonly dim: number;
  readonly format: FormatName;
  /** The same seed gives the same problem. */
  readonly seed: number;
  /** log2 of the growth of the maximum from block to block that the regimes of steps stay beside. */
  readonly step?: number;
}

interface ScoreValues extends ProblemValues {
  /** Factor on Q·K. */
  readonly scale: number;
}

interface ScoreRegime {
  /** What the scores, in natural units, look like. */
  readonly description: string;
  /** Whether the problem depends on the request's `step`. */
  readonly hasSteps: boolean;
  readonly draw: (request: ScoreProblemRequest, random: RandomValues) => ScoreValues;
}

/** Keys of a block, over which the steps are. */
const blockKeys = 128;
/** How far beside the request's step the regimes of steps are, in log2. */
const besideStep = 1 / 16;
/** The step where none is given: FlashAttention-4's threshold for 16-bit inputs. */
const usualStep = 8;
/** By how much the sink's score exceeds the others', and by how much a slope climbs. */
const sinkScore = 7;
const climbScore = 24;
const degreesOfFreedom = 3;

function fill(length: number, value: (index: number) => number): Float64Array {
  const values = new Float64Array(length);
  for (let i = 0; i < length; i++) values[i] = value(i);
  return values;
}

/** Q and K from one function, V standard normal. */
function drawn(
  { queries, keys, dim }: ScoreProblemRequest,
  random: RandomValues,
  value: () => number,
): ScoreValues {
  return {
    q: fill(queries * dim, value),
    k: fill(keys * dim, value),
    v: fill(keys * dim, random.normal),
    scale: 1 / Math.sqrt(dim),
  };
}

/** Normal Q and K whose scores have the standard deviation. */
function normal(deviation: number): ScoreRegime['draw'] {
  const factor = Math.sqrt(deviation);
  return (request, random) => drawn(request, random, () => factor * random.normal());
}

/** A random direction, of length 1. */
function direction(dim: number, random: RandomValues): Float64Array {
  const values = fill(dim, random.normal);
  const length = Math.hypot(...values);
  return values.map((x) => x / length);
}

function addTo(rows: Float64Array, row: number, vector: Float64Array, strength: number): void {
  vector.forEach((x, c) => (rows[row * vector.length + c]! += strength * x));
}

function drawSink(request: ScoreProblemRequest, random: RandomValues): ScoreValues {
  const { queries, dim } = request;
  const values = drawn(request, random, random.normal);
  const along = direction(dim, random);
  const strength = Math.sqrt(sinkScore * Math.sqrt(dim));
  for (let row = 0; row < queries; row++) addTo(values.q, row, along, strength);
  values.k.fill(0, 0, dim);
  addTo(values.k, 0, along, strength);
  return values;
}

function drawStudent(request: ScoreProblemRequest, random: RandomValues): ScoreValues {
  return drawn(request, random, () => {
    let chiSquared = 0;
    for (let i = 0; i < degreesOfFreedom; i++) chiSquared += random.normal() ** 2;
    return random.normal() / Math.sqrt(chiSquared / degreesOfFreedom);
  });
}

/** Scores that climb along the keys by the slope's share of `climbScore`, with a little noise. */
function drawSlope(slope: (share: number) => number): ScoreRegime['draw'] {
  return (request, random) => {
    const { queries, keys, dim } = request;
    const values = drawn(request, random, () => random.normal() / 4);
    const along = direction(dim, random);
    const strength = Math.sqrt(climbScore * Math.sqrt(dim));
    for (let row = 0; row < queries; row++) addTo(values.q, row, along, strength);
    for (let key = 0; key < keys; key++)
      addTo(values.k, key, along, strength * slope(key / Math.max(keys - 1, 1)));
    return values;
  };
}

/**
 * The first channels spell a level in digits to base 8, which every format of at least 3 significand
 * bits holds; the query has their weights.
 */
const digitWeights: readonly number[] = [256, 32, 4, 1 / 2, 1 / 16];
const digitBase = 8;
/** Levels are multiples of this, up to the largest that the digits spell. */
const levelUnit = 1 / 16;
const largestLevel = 2048 - levelUnit;
/** The fewest dimensions that hold a level and leave as many for noise. */
const fewestStepDimensions = 2 * digitWeights.length;
/** Keys beside their block's largest lie this far below it at least, and at most; log2. */
const drops = { least: 4, most: 8 };
/** Noise never reaches this, so that it moves no maximum. */
const largestNoise = drops.least;

/**
 * Levels that climb from the last block of 128 keys to the first by the step and what lies beside it,
 * in log2, as far as digits go: one key of each
 * block is exactly at its level for every query, the others lie below. The scale is ln 2, so that
 * scale · log2 e rounds to 1 and levels are exponents of 2 without any rounding.
 */
function drawSteps(beside: number): ScoreRegime['draw'] {
  return ({ queries, keys, dim, step = usualStep }, random) => {
    if (dim < fewestStepDimensions)
      throw new RequestError(
        `steps of the maximum need ${fewestStepDimensions} dimensions, not ${dim}; give more, or another regime`,
      );
    const digits = digitWeights.length;
    const noises = dim - digits;
    // |q| ≤ 1/2, and the sum of |k| over the noise channels below twice the largest noise.
    const noise = (): number => (2 * random.uniform() - 1) / 2;
    const keyNoise = (): number => ((2 * random.uniform() - 1) * 1.75 * largestNoise) / noises;
    const blocks = Math.ceil(keys / blockKeys);
    const levelOf = (key: number): number =>
      Math.min((blocks - 1 - Math.floor(key / blockKeys)) * (step + beside), largestLevel);
    const k = fill(keys * dim, keyNoise);
    for (let key = 0; key < keys; key++) {
      const isLargest = key % blockKeys === 0;
      const drop = levelUnit * random.integer(drops.least / levelUnit, drops.most / levelUnit);
      const level = levelOf(key) - (isLargest ? 0 : drop);
      if (isLargest) k.fill(0, key * dim, (key + 1) * dim);
      let rest = Math.abs(level) / levelUnit;
      for (let digit = digits - 1; digit >= 0; digit--) {
        k[key * dim + digit] = (level < 0 ? -1 : 1) * (rest % digitBase);
        rest = Math.floor(rest / digitBase);
      }
    }
    return {
      q: fill(queries * dim, (i) => digitWeights[i % dim] ?? noise()),
      k,
      v: fill(keys * dim, random.normal),
      scale: Math.LN2,
    };
  };
}

function drawPositiveValues(request: ScoreProblemRequest, random: RandomValues): ScoreValues {
  const values = normal(4)(request, random);
  return { ...values, v: values.v.map((x) => Math.abs(x)) };
}

function drawConstantKeys(request: ScoreProblemRequest, random: RandomValues): ScoreValues {
  const values = drawn(request, random, random.normal);
  return { ...values, k: values.k.map((_, i) => values.k[i % request.dim]!) };
}

/**
 * Regimes of scores: how a row's scores are spread and how its maximum moves from block to block of
 * 128 keys, which FlashAttention-4 visits from the last to the first.
 */
const regimes = {
  'normal-1': {
    description: 'normal scores, standard deviation 1',
    hasSteps: false,
    draw: normal(1),
  },
  'normal-4': {
    description: 'normal scores, standard deviation 4',
    hasSteps: false,
    draw: normal(4),
  },
  'normal-16': {
    description: 'normal scores, standard deviation 16: a few keys take all the weight',
    hasSteps: false,
    draw: normal(16),
  },
  sink: {
    description: 'normal scores but for the first key, visited last, which is 7 above',
    hasSteps: false,
    draw: drawSink,
  },
  'student-t': {
    description: "Q and K from Student's t with 3 degrees of freedom",
    hasSteps: false,
    draw: drawStudent,
  },
  ascending: {
    description: 'scores climb by 24 along the keys: the first block visited has the maximum',
    hasSteps: false,
    draw: drawSlope((share) => share),
  },
  descending: {
    description: 'scores fall by 24 along the keys: the maximum grows with every block visited',
    hasSteps: false,
    draw: drawSlope((share) => 1 - share),
  },
  'steps-below': {
    description: 'the maximum grows by 1/16 less than the threshold from block to block (log2)',
    hasSteps: true,
    draw: drawSteps(-besideStep),
  },
  'steps-above': {
    description: 'the maximum grows by 1/16 more than the threshold from block to block (log2)',
    hasSteps: true,
    draw: drawSteps(besideStep),
  },
  'positive-values': {
    description: 'normal scores, standard deviation 4, and V ≥ 0',
    hasSteps: false,
    draw: drawPositiveValues,
  },
  'constant-keys': {
    description: 'one key for all: equal scores',
    hasSteps: false,
    draw: drawConstantKeys,
  },
} satisfies Record<string, ScoreRegime>;

/** The name of a regime of scores. */
export type ScoreRegimeName = keyof typeof regimes;

/** Every regime's name. */
export const scoreRegimeNames = Object.keys(regimes) as ScoreRegimeName[];

/** What the scores of a regime look like, and whether they depend on a step. */
export function scoreRegime(name: ScoreRegimeName): Omit<ScoreRegime, 'draw'> {
  const { description, hasSteps } = regimes[name];
  return { description, hasSteps };
}

/**
 * A problem of one head in a regime of scores, the same for the same request; values are rounded to the
 * format, to nearest even, those beyond its largest finite number to that.
 * @throws RequestError for an unknown regime, fewer than 10 dimensions in a regime of steps, and a step
 * that is no positive multiple of 1/16
 */
export function scoreProblem(name: ScoreRegimeName, request: ScoreProblemRequest): Problem {
  if (!Object.hasOwn(regimes, name))
    throw new RequestError(
      `no regime of scores ${JSON.stringify(name)}; choose from ${scoreRegimeNames.join(', ')}`,
    );
  const { queries, keys, dim, format, seed, step = usualStep } = request;
  if (!(step > besideStep && Number.isInteger(step / besideStep)))
    throw new RequestError(
      `step is ${step}; give a multiple of ${besideStep} above ${besideStep}, such as ${usualStep}`,
    );
  const regime: ScoreRegime = regimes[name];
  const { scale, ...values } = regime.draw({ ...request, step }, randomValues(seed));
  return encodeProblem({
    sizes: { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: dim, vDim: dim },
    formats: { q: format, k: format, v: format },
    values,
    scale,
    ...{ causal: false, window: null, softcap: null },
  });
}
