import {
  type Hypothesis,
  type HypothesisContext,
  type HypothesisFamily,
  rowsToFit,
  type SampleRow,
} from '../hypothesis.js';
import { predictWeighted, scalePrediction, softmaxRow, type RowPrediction } from '../prediction.js';

/** Rows of a head that its number is fitted to, and those that its start is chosen by. */
const fittedRows = 24;
const startRows = 2;
const steps = 8;
/** Heads that numbers are fitted for at most. */
const mostHeads = 8;

/** A parameter with one number a head, in the scores or in the row sum. */
interface HeadParameter {
  readonly starts: readonly number[];
  readonly predict: (row: SampleRow, value: number) => RowPrediction;
  /** Whether the starts are so dense that one of them explains some of the error, if the number does. */
  readonly isDense: boolean;
  /** The change of the number that its derivative is taken over. */
  readonly step: (value: number) => number;
}

/** The remainder from which on the size of an output's error does not matter. */
const mostRemainder = 1e6;

/** Sum of squares that a value leaves of output and LSE, in units of the rounding. */
function remainder(row: SampleRow, prediction: RowPrediction): number {
  const { observed, observedLse, correct, lseNoise } = row;
  let sum = 0;
  prediction.out.forEach((x, c) => (sum += (observed[c] - x) ** 2));
  const ofOutput = (sum * observed.length) / Math.max(correct.noise, prediction.noise);
  const ofLse =
    observedLse === null || Number.isNaN(prediction.lse)
      ? 0
      : ((observedLse - prediction.lse) / lseNoise) ** 2;
  return Math.min(ofOutput, mostRemainder) + Math.min(ofLse, 1e8);
}

/**
 * The largest part of the squares that the best start leaves of a number that explains them, where rows show the error by
 * themselves.
 */
const mostLeft = 0.9;

/** The number that explains the rows of a head best, by Gauss and Newton from the best start. */
function fitNumber(rows: readonly SampleRow[], of: HeadParameter, pooled: boolean): number | null {
  const first = rows.slice(0, startRows);
  const costOf = (predict: (row: SampleRow) => RowPrediction) =>
    first.reduce((sum, row) => sum + remainder(row, predict(row)), 0);
  const costs = of.starts.map((value) => costOf((row) => of.predict(row, value)));
  const ofCorrect = costOf(({ correct }) => correct);
  const isScreened = of.isDense && !pooled && ofCorrect < mostRemainder;
  if (isScreened && Math.min(...costs) > mostLeft * ofCorrect) return null;
  let value = of.starts[costs.indexOf(Math.min(...costs))];
  for (let i = 0; i < steps; i++) {
    let gradient = 0;
    let curvature = 0;
    const step = of.step(value);
    for (const row of rows) {
      const at = of.predict(row, value);
      const beside = of.predict(row, value + step);
      const variance = Math.max(row.correct.noise, at.noise) / row.observed.length;
      at.out.forEach((x, c) => {
        const d = (beside.out[c] - x) / step;
        gradient += (d * (row.observed[c] - x)) / variance;
        curvature += d ** 2 / variance;
      });
      if (row.observedLse === null || Number.isNaN(at.lse)) continue;
      const d = (beside.lse - at.lse) / step;
      gradient += (d * (row.observedLse - at.lse)) / row.lseNoise ** 2;
      curvature += (d / row.lseNoise) ** 2;
    }
    const change = gradient / curvature;
    if (!Number.isFinite(change)) return null;
    value += change;
    if (Math.abs(change) < 1e-9) break;
  }
  return value;
}

/** The fitted numbers of all damaged heads, or null when one cannot be fitted. */
function fitHeads(
  { sample, shape, pooled }: HypothesisContext,
  of: HeadParameter,
): Map<number, number> | null {
  const damaged = sample.filter((row) => row.damaged);
  // The same head of another batch entry has the same number.
  const heads = [...new Set(damaged.map(({ head }) => head % shape.heads))];
  if (heads.length > mostHeads) return null;
  const numbers = new Map<number, number>();
  for (const head of heads) {
    const value = fitNumber(
      damaged
        .filter((row) => row.head % shape.heads === head)
        .slice(0, rowsToFit(shape, fittedRows)),
      of,
      pooled,
    );
    if (value === null) return null;
    numbers.set(head, value);
  }
  return numbers;
}

/** "0.5 on head 0, 0.25 on head 1". */
function listOf(numbers: ReadonlyMap<number, number>): string {
  const entries = [...numbers].sort(([a], [b]) => a - b);
  const shown = entries
    .slice(0, 4)
    .map(([head, value]) => `${Number(value.toPrecision(3))} on head ${head}`);
  return `${shown.join(', ')}${entries.length > 4 ? ' and so on' : ''}`;
}

function hypothesis(
  context: HypothesisContext,
  of: HeadParameter,
  about: Pick<Hypothesis, 'id' | 'technique'>,
  statement: (numbers: ReadonlyMap<number, number>) => string,
): Hypothesis | null {
  const numbers = fitHeads(context, of);
  if (numbers === null) return null;
  return {
    ...about,
    statement: statement(numbers),
    adjusted: true,
    ofHeads: true,
    predict: (row) => {
      const value = numbers.get(row.head % context.shape.heads);
      return value === undefined ? row.correct : of.predict(row, value);
    },
  };
}

/** A sink: one more term in the row sum, of a logit of its own on each head. */
function sink(follows: boolean): HeadParameter {
  return {
    starts: [-4, -2, 0, 2, 4],
    isDense: false,
    step: () => 2 ** -10,
    predict: (row, logit) => {
      const more = Math.log1p(Math.exp(logit - row.denominator));
      return scalePrediction(
        row,
        row.correct,
        Math.exp(-more),
        row.correct.lse + (follows ? more : 0),
      );
    },
  };
}

/** Powers of two that the search for a slope starts from. */
const slopes = Array.from({ length: 13 }, (_, k) => 2 ** -k);

/** A penalty proportional to the distance between query and key. */
function alibi(
  { reader }: HypothesisContext,
  distance: (key: number, diagonal: number) => number,
): HeadParameter {
  return {
    starts: [...slopes, ...slopes.map((x) => -x)],
    isDense: true,
    step: (value) => Math.max(Math.abs(value), 2 ** -12) * 2 ** -8,
    predict: (row, slope) => {
      const { firstKey, query, keys, queries } = reader.place(row.row);
      const diagonal = firstKey + query + keys - queries;
      const scores = reader
        .scores(row.row)
        .map((s, j) => (s === -Infinity ? s : s - slope * distance(j, diagonal)));
      return predictWeighted(row, softmaxRow(scores, reader.valuesOf(row.row, row.kv)));
    },
  };
}

const distances = [
  ['the distance |query − key|', (key: number, diagonal: number) => Math.abs(diagonal - key)],
  ['the distance query − key', (key: number, diagonal: number) => diagonal - key],
  ['the key’s position', (key: number) => -key],
] as const;

/** Attention sinks and ALiBi where none was asked for. */
export const scoreBiasHypotheses: HypothesisFamily = function* (context) {
  const { sink: asked, alibiSlopes, bias } = context.reader.problem;
  const follow = context.input.outputs.lse === null ? [false] : [true, false];
  for (const follows of asked === undefined ? follow : []) {
    const found = hypothesis(
      context,
      sink(follows),
      { id: 'sink-unasked', technique: 'row-sum' },
      (numbers) =>
        `an attention sink is in the row sum that was not asked for, of logit ${listOf(numbers)}${context.input.outputs.lse === null || follows ? '' : ', but not in the LSE'}`,
    );
    if (found !== null) yield found;
  }
  if (alibiSlopes !== undefined || bias !== undefined) return;
  for (const [name, distance] of distances) {
    const found = hypothesis(
      context,
      alibi(context, distance),
      { id: 'alibi-unasked', technique: 'scale-subtract' },
      (numbers) =>
        `a bias that was not asked for (ALiBi) is on the scores, proportional to ${name}: ${listOf(numbers)}`,
    );
    if (found !== null) yield found;
  }
};
