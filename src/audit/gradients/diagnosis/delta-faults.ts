import { formatCount } from '../../../words/index.js';
import type { FailedGradients } from './failed-gradients.js';
import { meanShares } from './mean-shares.js';
import type { Prediction } from './prediction.js';
import type { Replayed } from './replay/replay.js';

/** A row sum that a kernel may take for D. */
interface WrongMean {
  readonly id: string;
  readonly words: string;
  /** The D that is used for a row. */
  readonly of: (means: Float64Array, row: number, queries: number) => number;
}

const wrongMeans: readonly WrongMean[] = [
  { id: 'delta-missing', words: 'is missing', of: () => 0 },
  {
    id: 'delta-previous-row',
    words: 'is that of the row before',
    of: (means, row, queries) => (row % queries === 0 ? means[row] : means[row - 1]),
  },
  {
    id: 'delta-next-row',
    words: 'is that of the row behind',
    of: (means, row, queries) => (row % queries === queries - 1 ? means[row] : means[row + 1]),
  },
  {
    id: 'delta-sign',
    words: 'is added where it is to be subtracted',
    of: (means, row) => -means[row],
  },
  { id: 'delta-twice', words: 'is subtracted twice', of: (means, row) => 2 * means[row] },
];

/** Standard deviations from which on a row's D is taken to be off. The tests tell whether that explains the gradients. */
const sureDeviations = 3;

/** The fewest columns of dQ from which a row's D is told. */
const fewestColumns = 8;

/** What a D that is off by `off` per row does: dQ loses scale·off·Σ P g k, dK loses scale·Σ off P g q. dV stays. */
export function* deltaFaults(of: Replayed): Generator<Prediction> {
  const { failed } = of;
  const { problem, measured, given } = failed;
  const { gradients, mean, shape } = measured;
  const { queries, qkDim } = shape;
  if (problem.scale === 0) return;
  const shares = meanShares(of, wrongMeans.length + 2);
  if (shares === null) return;
  const hasKeys = given.some(({ quantity }) => quantity.name === 'dk');
  const predict = (off: Float64Array) => {
    const ofKeys = hasKeys ? shares.ofKeys(off) : null;
    return {
      dq: gradients.dq.exact.values.map((x, i) => {
        const factor = off[Math.floor(i / qkDim)];
        return factor === 0 ? x : x - problem.scale * factor * shares.ofQueries[i];
      }),
      ...(ofKeys === null ? {} : { dk: gradients.dk.exact.values.map((x, i) => x - ofKeys[i]) }),
    };
  };
  for (const { id, words, of: wrong } of wrongMeans) {
    const off = mean.values.map((x, row) => wrong(mean.values, row, queries) - x);
    if (!off.every(Number.isFinite)) continue;
    yield {
      id,
      sentence: `the row sum D = dO·O ${words} in dS = P(dP − D), which dQ and dK follow`,
      predicted: predict(off),
    };
  }
  const dq = given.find(({ quantity }) => quantity.name === 'dq');
  if (dq === undefined || qkDim < fewestColumns) return;
  const off = foundOff(dq.values, shares.ofQueries, failed);
  const rows = off.reduce((count, x) => count + (x === 0 ? 0 : 1), 0);
  if (rows === 0) return;
  yield {
    id: 'delta-wrong',
    sentence: `the row sum D = dO·O is wrong in ${formatCount(rows, 'row')}, as where O or D is read before it is written, and dQ and dK follow it`,
    predicted: predict(off),
  };
}

/** By how much the D of each row is off, as its error in dQ tells along Σ P g k; 0 where roundings explain that. */
function foundOff(
  values: Float64Array,
  means: Float64Array,
  { problem, measured }: FailedGradients,
): Float64Array {
  const { exact, bound } = measured.gradients.dq;
  const { qkDim } = measured.shape;
  const rows = values.length / qkDim;
  return Float64Array.from({ length: rows }, (_, row) => {
    let [products, squares, allowed] = [0, 0, 0];
    for (let i = row * qkDim; i < (row + 1) * qkDim; i++) {
      const direction = problem.scale * means[i];
      products += (values[i] - exact.values[i] - bound.shift[i]) * direction;
      squares += direction * direction;
      allowed += (bound.systematic[i] + sureDeviations * bound.deviation[i]) * Math.abs(direction);
    }
    return Math.abs(products) <= allowed || !(squares > 0) ? 0 : -products / squares;
  });
}
