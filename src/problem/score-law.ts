import { decodeToFloat64, formats } from '../formats/index.js';
import { broadcastStrides } from './broadcast.js';
import { rowPlaces } from './places.js';
import type { Problem, ProblemShape } from './problem.js';
import { problemShape } from './shape.js';

/**
 * Writes the numbers that are added to the scores of a row after the softcap: element j of the target is that of key
 * `firstKey` + j, and 0 where a bias of −∞ hides the key. ALiBi's product counts as exact once it is rounded to fp64,
 * which it is for slopes in fp32; so does the sum of bias and ALiBi with its rest.
 * @param head counted over [batch, heads]
 * @param rest as long as the target: receives the rounding errors of the fp64 sum of bias and ALiBi
 */
export type ScoreAddend = (
  head: number,
  query: number,
  firstKey: number,
  target: Float64Array,
  rest?: Float64Array,
) => void;

/** The function from the product q·k to the score of a key: the one law that every problem obeys. */
export interface ScoreLaw {
  readonly scale: number;
  /** Scores become cap·tanh(score / cap) after the scale; null for none. */
  readonly softcap: number | null;
  /** The addend; null for none. */
  readonly addend: ScoreAddend | null;
  /** Whether the addend is a sum, which may leave a rest. */
  readonly hasRest?: boolean;
}

/**
 * The score law of a problem.
 * @throws RequestError as `problemShape`, where no shape is given and the problem adds to scores
 */
export function scoreLaw(problem: Problem, shape?: ProblemShape): ScoreLaw {
  const { scale, softcap } = problem;
  const addend = scoreAddend(problem, shape);
  const hasRest = problem.bias !== undefined && problem.alibiSlopes !== undefined;
  return { scale, softcap, addend, hasRest };
}

/** Bias and ALiBi together. */
function scoreAddend(problem: Problem, given?: ProblemShape): ScoreAddend | null {
  const { bias, alibiSlopes } = problem;
  if (bias === undefined && alibiSlopes === undefined) return null;
  const shape = given ?? problemShape(problem);
  const placeOf = rowPlaces(problem, shape);
  const strides = bias === undefined ? null : broadcastStrides(bias.shape);
  const slopes =
    alibiSlopes === undefined
      ? null
      : decodeToFloat64(alibiSlopes.data, formats[alibiSlopes.format]);
  const slopesPerSequence = alibiSlopes?.shape.length === 2 ? shape.heads : 0;
  return (head, query, firstKey, target, rest) => {
    const place = placeOf(head, query);
    target.fill(0);
    rest?.fill(0);
    const first = firstKey - place.firstKey;
    // A row sees keys of its own sequence only.
    const begin = Math.max(0, -first);
    const end = Math.min(target.length, place.keys - first);
    if (begin >= end) return;
    if (bias !== undefined && strides !== null) {
      const row =
        place.sequence * strides.batch + place.head * strides.head + place.query * strides.query;
      if (strides.key === 0) {
        const [value] = decodeToFloat64(bias.data, formats[bias.format], undefined, row, row + 1);
        target.fill(value === -Infinity ? 0 : value, begin, end);
      } else {
        const values = target.subarray(begin, end);
        const at = row + first + begin;
        decodeToFloat64(bias.data, formats[bias.format], values, at, at + end - begin);
        for (let j = begin; j < end; j++) if (target[j] === -Infinity) target[j] = 0;
      }
    }
    if (slopes === null) return;
    const slope = slopes[place.sequence * slopesPerSequence + place.head];
    const diagonal = place.query + place.keys - place.queries;
    for (let j = begin; j < end; j++) {
      const ofBias = target[j];
      const ofSlope = -slope * Math.abs(diagonal - first - j);
      const sum = ofBias + ofSlope;
      target[j] = sum;
      if (rest === undefined) continue;
      // 2Sum
      const rounded = sum - ofBias;
      rest[j] = ofBias - (sum - rounded) + (ofSlope - rounded);
    }
  };
}

/**
 * The score of a key in plain fp64, every operation rounded: for statistics and searches. Oracles and models
 * of kernels have arithmetic of their own.
 * @param product q·k
 */
export function scoreOf(
  { scale, softcap, addend }: ScoreLaw,
  product: number,
  head: number,
  query: number,
  key: number,
): number {
  const scaled = scale * product;
  const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
  if (addend === null) return capped;
  const added = new Float64Array(1);
  addend(head, query, key, added);
  return capped + added[0];
}
