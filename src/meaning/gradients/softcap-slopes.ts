import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDouble,
  negateDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { ln2Words, type ExponentRow } from '../../../oracles/index.js';
import type { ScoreLaw } from '../../problem/index.js';

/** A row's keys with their exponents. */
interface KeyedRow {
  readonly exponents: ExponentRow;
  readonly keys: readonly number[];
}

/** What is added to the score of a key after the softcap. */
function addendOf({ addend }: ScoreLaw, head: number, row: number, key: number): DoubleDouble {
  if (addend === null) return doubleDouble(0);
  const [target, rest] = [new Float64Array(1), new Float64Array(1)];
  addend(head, row, key, target, rest);
  return { high: target[0], low: rest[0] };
}

/**
 * 1 − tanh² of each score of a row: the derivative of its softcap; null without one. The absolute error is some 2^-97, for the tanh is
 * found from the exponent.
 *
 * @param head counted over [batch, heads]
 */
export function softcapSlopes(
  law: ScoreLaw,
  head: number,
  row: number,
  { exponents: { exponents, origin }, keys }: KeyedRow,
): readonly DoubleDouble[] | null {
  const { softcap } = law;
  if (softcap === null) return null;
  return exponents.map((exponent, j) => {
    const score = addDoubleDouble(multiplyDoubleDouble(exponent, ln2Words()), origin);
    const capped = addDoubleDouble(score, negateDoubleDouble(addendOf(law, head, row, keys[j])));
    const tanh = divideDoubleDoubleByFloat64(capped, softcap);
    return multiplyDoubleDouble(
      addFloat64ToDoubleDouble(negateDoubleDouble(tanh), 1),
      addFloat64ToDoubleDouble(tanh, 1),
    );
  });
}
