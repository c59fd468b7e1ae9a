import type { Allocator } from '../../../../reuse.js';
import { meanRounding, type OperandRounding, type PairArithmetic } from '../pair-arithmetic.js';
import { operand, pairRules } from './pairs.generated.js';

/** The largest number of factors that an operand may have, and of those beside the smallest: dropout's, the scale's and that of both. */
const mostFactors = 3;

/** Where the rules of a kernel's arithmetic are in the loops' memory, those of its roundings among them. */
export interface PlacedRules {
  readonly address: number;
  readonly p: number;
  readonly weights: number;
  readonly ds: number;
}

function placeOperand({ place, struct }: Allocator, of: OperandRounding): number {
  const factors = (numbers: readonly number[]) => {
    if (numbers.length > mostFactors) throw new Error(`no room for ${numbers.length} factors`);
    const table = new Float64Array(mostFactors);
    table.set(numbers);
    return place(table);
  };
  return struct(operand).write({
    isRounded: of.format !== null,
    unit: of.format?.unit ?? 0,
    least: of.format?.least ?? 0,
    maxFinite: of.format?.maxFinite ?? Infinity,
    largestUnit: of.largestUnit,
    smallestUnit: of.smallestUnit,
    times: of.times,
    units: factors(of.units),
    unitCount: of.units.length,
    others: factors(of.otherUnits),
    otherCount: of.otherUnits.length,
  });
}

/** Numbers that `placeRules` takes from the allocator. */
export const ruleNumbers = 6 * (mostFactors + 1);

/** Writes the arithmetic of a kernel where the loops find it. */
export function placeRules(allocator: Allocator, arithmetic: PairArithmetic): PlacedRules {
  const { softcap, scores, products, ...of } = arithmetic;
  const p = placeOperand(allocator, of.p);
  const weights = placeOperand(allocator, of.weights);
  const ds = placeOperand(allocator, of.ds);
  const address = allocator.struct(pairRules).write({
    ...of,
    isCapped: softcap !== null,
    softcap: softcap ?? 0,
    scoresWorst: scores.worst,
    scoresToZero: scores.toZero,
    scoresWalk: scores.walk,
    productsWorst: products.worst,
    productsToZero: products.toZero,
    productsWalk: products.walk,
    meanRounding,
    p,
    weights,
    ds,
  });
  return { address, p, weights, ds };
}
