import type { FailedGradients } from '../failed-gradients.js';
import { fails, type PredictedGradients, type Prediction } from '../prediction.js';

/** Tiles of queries or keys, the last of which may be padded. */
const tileSizes = [64, 128] as const;

/** The exponent from which on e^−LSE is no number in fp32, so that 0 times it is NaN without any padding. */
const largestExponent = 88;

/**
 * Reads beyond the last query or key, where nothing was written: 0 times a NaN is NaN, in dK and dV of every key by
 * queries beyond the last, in dQ of every query by keys beyond. Gradients are NaN throughout, and others right.
 */
export function* paddingFaults(failed: FailedGradients): Generator<Prediction> {
  const { given, measured, problem } = failed;
  const { queries, keys } = measured.shape;
  const failing = given.filter((one) => fails(failed, one));
  const isOfQueries = failing.every(({ quantity }) => quantity.name === 'dq');
  const isOfKeys = failing.every(({ quantity }) => quantity.name !== 'dq');
  if (problem.sequences !== undefined || (!isOfQueries && !isOfKeys)) return;
  // A gradient that is right, from the same rows, tells that these rows are right themselves.
  if (!given.some(({ quantity }) => (quantity.name === 'dq') === isOfKeys)) return;
  // One query's tile is all padding, and kernels treat it apart; e^−LSE may overflow as well.
  const count = isOfKeys ? queries : keys;
  const isPadded = count > 1 && tileSizes.every((size) => count % size !== 0);
  const { lse } = measured.reference.quantities;
  if (!isPadded || lse.values.some((x) => -x > largestExponent)) return;
  if (!failing.every(({ values }) => values.every(Number.isNaN))) return;
  const names = failing.map(({ quantity }) => quantity.prose).join(' and ');
  const what = isOfKeys
    ? failing.length === 1 && failing[0].quantity.name === 'dk'
      ? 'D, LSE or dO of queries'
      : 'the LSE or dO of queries'
    : 'K or V of keys';
  yield {
    id: 'padding-nan',
    sentence: `${names} ${failing.length === 1 ? 'is' : 'are'} NaN everywhere, as where ${what} beyond the last, which fill up a tile of ${tileSizes.join(' or ')}, is read before it is written: 0 times NaN`,
    predicted: Object.fromEntries(
      failing.map(({ quantity: { name }, values }) => [name, values] as const),
    ) as PredictedGradients,
  };
}
