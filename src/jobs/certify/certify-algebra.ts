import {
  compareAlgebra,
  type AlgebraComparison,
  type InferredFactor,
  type RowPlace,
  type WorstDistance,
} from '../../meaning/contracts/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { AttentionContract } from '../launch/contract-of-launch.js';
import type { AlgebraCertificate, ElementPlace } from './certificate.js';
import { contractValues, type RealValues } from './contract-values.js';
import type { FollowedRun } from './followed-run.js';

/** Up to this distance an identity of real numbers holds: double-doubles of some thousand terms err by 1e−28. */
export const exactLimit = 1e-25;

/** Products of q and k that are recomputed at most, and the fewest and most rows that are compared. */
export const mostProducts = 2 ** 24;
const [fewestRows, mostRows] = [8, 256];

/** Rows equally far apart, over all sequences and heads. */
export function chooseRows(problem: Problem): readonly RowPlace[] {
  const { batch, heads, queries, keys, qkDim } = problemShape(problem);
  const all = batch * heads * queries;
  const affordable = Math.floor(mostProducts / Math.max(keys * qkDim, 1));
  const count = Math.min(all, Math.max(fewestRows, Math.min(mostRows, affordable)));
  return Array.from({ length: count }, (_, i) => {
    const at = Math.floor(((i + 0.5) * all) / count);
    const sequence = Math.floor(at / queries);
    return { batch: Math.floor(sequence / heads), head: sequence % heads, row: at % queries };
  });
}

/** A comparison, and the same with idioms kept; null where there are none. */
interface Comparisons {
  readonly taken: AlgebraComparison;
  readonly kept: AlgebraComparison | null;
}

/** Where the largest distance is. */
export function placeOfWorst(worst: WorstDistance | null): ElementPlace | null {
  return worst && { ...worst.place, column: worst.column };
}

/** The name of a factor and, of a softcap, of the tanh before it. */
function constantName({ name, cap }: InferredFactor): string | null {
  return name === null || cap === null ? name : `${name} of ${cap.name}`;
}

function ofOut(
  { taken: { factor, isFactorTold, out }, kept }: Comparisons,
  rows: number,
): AlgebraCertificate {
  // Where nothing is compared, nothing refutes the kernel either.
  const distance = out.worst?.distance ?? 0;
  return {
    output: 'out',
    rows,
    compared: out.compared,
    without: out.withoutMeaning,
    telling: out.telling,
    isFactorTold,
    distance,
    worst: placeOfWorst(out.worst),
    idealDistance: out.worstIdeal?.distance ?? 0,
    keptDistance: kept && (kept.out.worst?.distance ?? 0),
    limit: exactLimit,
    constant: factor === null ? null : constantName(factor),
    constantError: factor?.fromExact ?? null,
    weights: null,
    delta: null,
    holds: distance <= exactLimit && (factor === null || factor.name !== null),
  };
}

function ofLse(
  { taken: { isFactorTold, lse }, kept }: Comparisons,
  rows: number,
): AlgebraCertificate {
  const distance = lse.worst?.distance ?? 0;
  const idealDistance = lse.worstIdeal?.distance ?? 0;
  return {
    output: 'lse',
    rows,
    compared: lse.compared,
    without: lse.withoutMeaning,
    telling: lse.telling,
    isFactorTold,
    distance,
    worst: placeOfWorst(lse.worst),
    idealDistance,
    keptDistance: kept && (kept.lse.worst?.distance ?? 0),
    limit: exactLimit,
    constant: lse.unit,
    constantError: null,
    weights: null,
    delta: null,
    holds: Math.min(distance, idealDistance) <= exactLimit,
  };
}

/**
 * Compares the real values of O and the LSE with the exact attention of the launch's problem, on a sample of rows. Where there are
 * idioms, those with idioms taken for functions decide.
 */
export function certifyAlgebra(
  followed: FollowedRun,
  { kept, taken }: RealValues,
  { problem, outputs }: AttentionContract,
): readonly AlgebraCertificate[] {
  const has = (quantity: string) => outputs.some(({ name }) => name === quantity);
  if (!has('out') && !has('lse')) return [];
  const realOf = contractValues(followed, outputs);
  const rows = chooseRows(problem);
  const decisive = compareAlgebra(problem, realOf(taken ?? kept), rows);
  const comparisons = {
    taken: decisive,
    kept: taken && compareAlgebra(problem, realOf(kept), rows, decisive.factor),
  };
  return [
    ...(has('out') ? [ofOut(comparisons, rows.length)] : []),
    ...(has('lse') ? [ofLse(comparisons, rows.length)] : []),
  ];
}
