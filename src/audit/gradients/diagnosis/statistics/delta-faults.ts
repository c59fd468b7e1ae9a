import { formatCount } from '../../../../words/index.js';
import { placeOfRows } from '../../../rows/index.js';
import type { FailedGradients } from '../failed-gradients.js';
import type { Prediction } from '../prediction.js';
import type { Replayed } from '../replay/replay.js';
import { deltaFactor, deltaLaws, type DeltaLaw, type FoundDeltas } from './delta-laws.js';
import { meanShares } from './mean-shares.js';

/** Standard deviations within which a row's D lies, as dQ tells it. */
const sureDeviations = 3;

/** The share of rows that must have the D of a rule: a row in a hundred is off by chance or by another error of its own. */
const leastShare = 0.98;

/** The largest distance of a row's D from a rule's, beside its own roundings, relative to the sizes that D is a sum of. */
const slack = 2 ** -7;

/** The fewest columns of dQ from which a row's D is told. */
const fewestColumns = 8;

/** Passes that are needed at most under a softcap. */
const passes = 8;

/** The largest error of a D in 16 bits, relative to the sizes that it is a sum of. */
const shortError = 2 ** -6;

/** Faults of D. A D that is off by `off` per row takes scale·off·Σ P g k from dQ and scale·Σ off P g q from dK. dV stays. */
export function* deltaFaults(of: Replayed): Generator<Prediction> {
  const { failed, scope } = of;
  const { problem, measured, given } = failed;
  const { gradients, mean, shape } = measured;
  const { qkDim } = shape;
  if (problem.scale === 0) return;
  const dq = given.find(({ quantity }) => quantity.name === 'dq');
  const shares = meanShares(of, passes);
  if (shares === null) return;
  const hasKeys = given.some(({ quantity }) => quantity.name === 'dk');
  const isIn = (row: number) => scope === null || scope[row] === 1;
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
  const found =
    dq === undefined || qkDim < fewestColumns
      ? null
      : foundDeltas(dq.values, shares.ofQueries, failed);
  const laws = function* (): Generator<DeltaLaw> {
    yield* deltaLaws(failed);
    if (found !== null) yield* deltaFactor(failed, mean.values, found, isIn);
  };
  for (const { id, words, deltas, rows, declares } of laws()) {
    const off = deltas.map((x, row) => (isIn(row) ? x - mean.values[row] : 0));
    if (!off.every(Number.isFinite)) continue;
    if (found !== null && !fits(off, found, failed)) continue;
    yield {
      id,
      sentence: `the row sum D = dO·O ${words} in dS = P(dP − D), which dQ and dK follow`,
      predicted: predict(off),
      ...(rows !== undefined && { rows }),
      ...(declares !== undefined && scope === null && { declares }),
    };
  }
  if (found === null || scope !== null) return;
  yield* offRows(failed, found, predict);
}

/** Rows whose D is off by no rule. */
function* offRows(
  { problem, measured }: FailedGradients,
  { deltas, tolerance }: FoundDeltas,
  predict: (off: Float64Array) => Prediction['predicted'],
): Generator<Prediction> {
  const { mean, shape } = measured;
  const off = deltas.map((x, row) => {
    const error = x - mean.values[row];
    return Math.abs(error) > tolerance[row] ? error : 0;
  });
  const rows = Array.from(off.keys()).filter((row) => off[row] !== 0);
  if (rows.length === 0) return;
  // A correct kernel may keep D, or its terms, in 16 bits.
  if (rows.every((row) => Math.abs(off[row]) <= shortError * mean.magnitude[row])) return;
  const isPart = 2 * rows.length < off.length;
  const cause = isPart
    ? `, as where O or D is read before it is written, or from another place,`
    : ', by no rule that is known,';
  yield {
    id: 'delta-wrong',
    sentence: `the row sum D = dO·O is wrong in ${formatCount(rows.length, 'row')}${cause} and dQ and dK follow it`,
    predicted: predict(off),
    place: placeOfRows(rows, { ...problem, shape }),
  };
}

/** Whether the rows have the D that a rule gives, as far as dQ tells. */
function fits(
  off: Float64Array,
  { deltas, tolerance }: FoundDeltas,
  { measured: { mean } }: FailedGradients,
): boolean {
  let [told, other] = [0, 0];
  off.forEach((x, row) => {
    if (!Number.isFinite(tolerance[row])) return;
    told++;
    const error = deltas[row] - mean.values[row] - x;
    const allowed = tolerance[row] + slack * (mean.magnitude[row] + Math.abs(x));
    if (!(Math.abs(error) <= allowed)) other++;
  });
  return told > 0 && other <= (1 - leastShare) * told;
}

/** The D of each row, as its error in dQ tells along Σ P g k, and how far roundings may leave that off. */
function foundDeltas(
  values: Float64Array,
  means: Float64Array,
  { problem, measured }: FailedGradients,
): FoundDeltas {
  const { exact, bound } = measured.gradients.dq;
  const { qkDim } = measured.shape;
  const rows = values.length / qkDim;
  const deltas = Float64Array.from(measured.mean.values);
  const tolerance = new Float64Array(rows).fill(Infinity);
  for (let row = 0; row < rows; row++) {
    let [products, squares, allowed] = [0, 0, 0];
    for (let i = row * qkDim; i < (row + 1) * qkDim; i++) {
      const direction = problem.scale * means[i];
      products += (values[i] - exact.values[i] - bound.shift[i]) * direction;
      squares += direction * direction;
      allowed += (bound.systematic[i] + sureDeviations * bound.deviation[i]) * Math.abs(direction);
    }
    if (!(squares > 0) || !Number.isFinite(products + allowed)) continue;
    deltas[row] -= products / squares;
    tolerance[row] = allowed / squares;
  }
  return { deltas, tolerance };
}
