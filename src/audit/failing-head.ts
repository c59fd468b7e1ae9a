import { judgedQuantities, type JudgedOutputs, type JudgedQuantity } from './judge-quantity.js';
import type { Coordinates } from './kernel-outputs.js';

/** The place of the element or number that is most wrong; null where all stay within their bounds. */
function worstPlace(judged: JudgedQuantity): Coordinates | null {
  if (judged.row === 'number') {
    const { firstNonFinite, outside, worst } = judged.numbers;
    return firstNonFinite?.at ?? (outside > 0 ? worst!.at : null);
  }
  const { firstNonFinite, outside, worst } = judged.elements;
  return firstNonFinite ?? (outside > 0 ? worst!.at : null);
}

/**
 * A head, counted over [batch, heads], that fails: the first that a test names, 0 where none does.
 * @param heads of a batch
 */
export function failingHead(outputs: JudgedOutputs, heads: number): number {
  const failing = judgedQuantities(outputs).flatMap((judged) => {
    const at = worstPlace(judged);
    const spread = judged.row === 'number' ? [] : judged.spread.results;
    return [
      ...(at === null ? [] : [at.batch * heads + at.head]),
      ...judged.structure
        .filter(({ statistic, threshold }) => Math.abs(statistic) > threshold)
        .map(({ head }) => head),
      ...spread.filter(({ measured, limit }) => measured > limit).map(({ head }) => head),
    ];
  });
  return failing[0] ?? 0;
}
