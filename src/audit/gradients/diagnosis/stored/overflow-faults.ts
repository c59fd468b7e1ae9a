import { listed } from '../../../../words/index.js';
import { problemMask, rowElements } from '../../../../problem/index.js';
import type { GivenGradient } from '../../judge-gradient.js';
import type { FailedGradients } from '../failed-gradients.js';
import { fails, type Prediction } from '../prediction.js';

/** The exponent from which on e^−LSE is no number in fp32. */
const largestExponent = Math.log(2 ** 128);

/** The rows of dQ with a deep LSE; the keys of dK and dV that such rows see. */
function spoiledRows({ problem, measured }: FailedGradients) {
  const { shape, reference } = measured;
  const { batch, heads, kvHeads, groupSize, queries, keys } = shape;
  const ofQueries = new Uint8Array(batch * heads * queries);
  const ofKeys = new Uint8Array(batch * kvHeads * keys);
  const { ranges } = problemMask(problem, shape);
  reference.denominator.forEach((lse, row) => {
    if (lse === -Infinity || -lse < largestExponent) return;
    ofQueries[row] = 1;
    const head = Math.floor(row / queries);
    const firstKey = Math.floor(head / groupSize) * keys;
    for (const { begin, end } of ranges(head, row % queries))
      ofKeys.fill(1, firstKey + begin, firstKey + end);
  });
  return { ofQueries, ofKeys };
}

/**
 * P as e^score times e^−LSE: where scores are so low that the second overflows, 0 times infinity. The gradients that such rows add to are not
 * finite, and all others are right.
 */
export function* overflowFaults(failed: FailedGradients): Generator<Prediction> {
  const { given, measured } = failed;
  const { ofQueries, ofKeys } = spoiledRows(failed);
  if (!ofQueries.includes(1)) return;
  const failing = given.filter((one) => fails(failed, one));
  const isSo = ({ quantity, values }: GivenGradient) => {
    const { exact, bound } = measured.gradients[quantity.name];
    const columns = rowElements(quantity, measured.shape);
    const spoiled = quantity.name === 'dq' ? ofQueries : ofKeys;
    return values.every((x, i) => {
      const isSpoiled = spoiled[Math.floor(i / columns)] === 1;
      if (isSpoiled !== !Number.isFinite(x)) return false;
      return isSpoiled || Math.abs(x - exact.values[i] - bound.shift[i]) <= bound.total[i];
    });
  };
  if (!failing.every(isSo)) return;
  const names = listed(failing.map(({ quantity }) => quantity.prose));
  yield {
    id: 'lse-overflow',
    sentence: `${names} ${failing.length === 1 ? 'is' : 'are'} NaN or infinite wherever rows with an LSE below −88 add to ${failing.length === 1 ? 'it' : 'them'}, and right elsewhere, as where P is e^score times e^−LSE, which overflows in fp32`,
    predicted: Object.fromEntries(
      failing.map(({ quantity: { name }, values }) => [name, values] as const),
    ),
  };
}
