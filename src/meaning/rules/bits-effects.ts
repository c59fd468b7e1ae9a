import type { LaneInstruction, LaneValue } from '../../isa/index.js';
import { drawnBytes, laneValue, registerBytes } from './drawn-bits.js';

/**
 * What an instruction on bits does to some bits of an operand: its results do not depend on them, its first result has them
 * where they were, or anything else.
 */
export type BitsEffect = 'none' | 'kept' | 'changed';

const probes = 8;

/**
 * Finds out of an instruction's definition what becomes of the bits `mask` of each operand that varies: it is evaluated on
 * random operands, twice with other bits under the mask. An effect is taken for another with a chance below 2^−50
 * where a mask has at least seven bits.
 *
 * @param fixed the values of operands that do not vary; null for those that do
 * @param masks the bits of each operand that are looked at; no bits of those that do not vary
 */
export function findBitsEffects(
  { sources, evaluate }: LaneInstruction,
  fixed: readonly (LaneValue | null)[],
  masks: readonly bigint[],
): readonly BitsEffect[] {
  const random = drawnBytes();
  const draw = (i: number): bigint =>
    BigInt(laneValue(Array.from({ length: registerBytes(sources[i]) }, () => random.next().value)));
  const shaped = (bits: bigint, i: number): LaneValue =>
    registerBytes(sources[i]) > 4 ? bits : Number(bits);
  const resultsOf = (operands: readonly LaneValue[]): readonly bigint[] => {
    const result = evaluate(...operands);
    return (typeof result === 'object' ? result : [result]).map(BigInt);
  };
  return masks.map((mask, varied) => {
    if (mask === 0n) return 'none';
    let [isSame, isKept] = [true, true];
    for (let i = 0; i < probes; i++) {
      const drawn = fixed.map((value, j) => (value === null ? draw(j) : 0n));
      const operands = fixed.map((value, j) => value ?? shaped(drawn[j], j));
      const other = (drawn[varied] & ~mask) | (draw(varied) & mask);
      const before = resultsOf(operands);
      const after = resultsOf(operands.with(varied, shaped(other, varied)));
      if (before.some((bits, j) => bits !== after[j])) isSame = false;
      if ((after[0] & mask) !== (other & mask)) isKept = false;
    }
    return isSame ? 'none' : isKept ? 'kept' : 'changed';
  });
}
