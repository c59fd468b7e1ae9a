import { formatNumber, listed } from '../../../../words/index.js';
import { rowElements } from '../../../../problem/index.js';
import type { GradientQuantityName } from '../../gradient-quantities.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type Prediction } from '../prediction.js';
import { rowsInScope, type Scope } from '../scope.js';

/** A factor by which a whole gradient may be off, and the mistake behind it. */
interface NamedFactor {
  readonly id: string;
  readonly factor: number;
  readonly words: string;
  readonly of: readonly GradientQuantityName[];
}

/** The relative distance within which a found factor is a named one. */
const nearness = 2 ** -6;

/** The least relative distance from 1 of a factor that names a mistake. */
const leastChange = 2 ** -5;

/** The factors that mistakes in the scale, the base of the exponential, signs and groups make. */
function namedFactors({ problem: { scale, dropout }, measured }: FailedGradients): NamedFactor[] {
  const ofScores = ['dq', 'dk'] as const;
  const all = ['dq', 'dk', 'dv'] as const;
  const { groupSize } = measured.shape;
  const candidates: NamedFactor[] = [
    { id: 'scale-missing', factor: 1 / scale, words: 'the scale is missing', of: ofScores },
    { id: 'scale-twice', factor: scale, words: 'the scale is applied twice', of: ofScores },
    { id: 'sign', factor: -1, words: 'the sign is wrong', of: all },
    {
      id: 'log2e-kept',
      factor: Math.LOG2E,
      words: 'the factor log2 e of the scores is not taken out',
      of: ofScores,
    },
    {
      id: 'ln2-twice',
      factor: Math.LN2,
      words: 'a factor of ln 2 is applied once too often',
      of: ofScores,
    },
    {
      id: 'group-mean',
      factor: 1 / groupSize,
      words: `it is the mean over the ${groupSize} heads of a group, not the sum`,
      of: ['dk', 'dv'],
    },
    {
      id: 'accumulator-not-zeroed',
      factor: 2,
      words: 'all is added to the values of another launch, as where an accumulator is not zeroed,',
      of: all,
    },
    ...(dropout === undefined
      ? []
      : [
          {
            id: 'dropout-factor',
            factor: 1 - dropout.probability,
            words: "dropout's factor 1 / (1 − p) is missing",
            of: all,
          },
        ]),
  ];
  return candidates.filter(({ factor }) => Math.abs(factor - 1) > leastChange);
}

/** The slope of some rows of a gradient on the exact ones; not finite where there is none. */
function slopeOf(values: Float64Array, exact: Float64Array, isIn: (i: number) => boolean): number {
  let [products, squares] = [0, 0];
  exact.forEach((x, i) => {
    if (!isIn(i)) return;
    if (!Number.isFinite(values[i]) || !Number.isFinite(x)) return;
    products += values[i] * x;
    squares += x * x;
  });
  return products / squares;
}

/** The least part of a squared error that a factor which no mistake is known to make has to explain. */
const leastShare = 0.1;

/** The part of the squared error of some rows that a factor explains. */
function shareOf(
  [values, exact]: readonly [values: Float64Array, exact: Float64Array],
  factor: number,
  isIn: (i: number) => boolean,
): number {
  let [before, after] = [0, 0];
  exact.forEach((x, i) => {
    if (!isIn(i) || !Number.isFinite(values[i]) || !Number.isFinite(x)) return;
    before += (values[i] - x) ** 2;
    after += (values[i] - factor * x) ** 2;
  });
  return 1 - after / before;
}

/** A scale on a gradient that has none, or missing in one that has it. */
function* scaleMoved(
  { problem: { scale } }: FailedGradients,
  failing: readonly GivenGradient[],
  slopes: readonly number[],
  predict: (factors: readonly number[]) => Prediction['predicted'],
): Generator<Prediction> {
  const at = failing.findIndex(({ quantity: { name } }) => name === 'dv');
  if (failing.length < 2 || at < 0 || Math.abs(scale - 1) <= leastChange) return;
  const factors = failing.map((_, i) => (i === at ? scale : 1 / scale));
  if (!slopes.every((slope, i) => Math.abs(slope / factors[i] - 1) < nearness)) return;
  const others = failing.filter((_, i) => i !== at).map(({ quantity }) => quantity.prose);
  yield {
    id: 'scale-moved',
    sentence: `dV is multiplied by the scale, which is missing in ${listed(others)}`,
    predicted: predict(factors),
    shrinks: true,
  };
}

/** Gradients off by a factor, whole or in some heads and sequences: that of a known mistake, or any. */
export function* factorFaults(failed: FailedGradients, scope: Scope | null): Generator<Prediction> {
  const { given, measured } = failed;
  const named = namedFactors(failed);
  const failing = given.filter((one) => fails(failed, one));
  const scoped = failing.flatMap((one) => {
    const rows = rowsInScope(failed, one, scope);
    const columns = rowElements(one.quantity, measured.shape);
    return rows === null ? [] : [(i: number) => rows[Math.floor(i / columns)] === 1];
  });
  if (scoped.length < failing.length) return;
  const slopes = failing.map(({ quantity: { name }, values }, i) =>
    slopeOf(values, measured.gradients[name].exact.values, scoped[i]),
  );
  if (!slopes.every((slope) => Number.isFinite(slope) && slope !== 0)) return;
  const predict = (factors: readonly number[]) =>
    Object.fromEntries(
      failing.map(({ quantity: { name } }, i) => [
        name,
        measured.gradients[name].exact.values.map((x, at) => (scoped[i](at) ? x * factors[i] : x)),
      ]),
    );
  const words = failing.map(({ quantity }) => quantity.prose);
  for (const { id, factor, words: cause, of } of named) {
    const isOfAll = failing.every(({ quantity: { name } }) => of.includes(name));
    const isNear = slopes.every((slope) => Math.abs(slope / factor - 1) < nearness);
    if (!isOfAll || !isNear) continue;
    const sentence = `${cause} in ${listed(words)}: ${words.length === 1 ? 'it is' : 'they are'} ${formatNumber(factor)} times what ${words.length === 1 ? 'it' : 'they'} should be`;
    yield { id, sentence, predicted: predict(failing.map(() => factor)), shrinks: true };
  }
  yield* scaleMoved(failed, failing, slopes, predict);
  const shares = failing.map(({ quantity: { name }, values }, i) =>
    shareOf([values, measured.gradients[name].exact.values], slopes[i], scoped[i]),
  );
  // Errors that a factor leaves as they are lie beyond their bounds with it by a little less.
  if (!shares.every((share) => share >= leastShare)) return;
  const found = words.map(
    (word, i) => `${word} is ${slopes[i].toFixed(4)} times what it should be`,
  );
  yield {
    id: 'factor',
    sentence: `${listed(found)}${scope === null ? ', everywhere' : ''}`,
    predicted: predict(slopes),
    shrinks: true,
  };
}
