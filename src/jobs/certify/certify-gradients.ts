import { decodeTensor } from '../../formats/index.js';
import {
  compareGradients,
  gradientNames,
  type GradientComparison,
  type GradientInputs,
  type GradientName,
  type NumbersOf,
  type PlacesByGradient,
} from '../../meaning/gradients/index.js';
import type { RowPlace } from '../../meaning/contracts/index.js';
import { problemMask, problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { formatGrouped } from '../../words/index.js';
import type { AttentionContract } from '../launch/contract-of-launch.js';
import type { ContractOutput } from '../launch/contract-output.js';
import { everyNumber, tensorOf } from '../launch/launch-tensors.js';
import type { AlgebraCertificate, UncomparedOutput } from './certificate.js';
import { chooseRows, exactLimit, mostProducts, placeOfWorst } from './certify-algebra.js';
import { contractValues, type RealValues } from './contract-values.js';
import type { FollowedRun } from './followed-run.js';

/** The comparison of a launch's gradients; both empty where its contract has none. */
export interface CertifiedGradients {
  readonly algebra: readonly AlgebraCertificate[];
  readonly uncompared: readonly UncomparedOutput[];
}

/** The most products of q and k of the heads that share one of K, all of which add to its gradients. */
const mostOfHead = 2 ** 30;

/** The most rows of dK and dV. */
const mostKeys = 256;

/** Keys equally far apart, of as many heads of K as can be afforded, one at least. */
function chooseKeys(problem: Problem): readonly RowPlace[] {
  const { batch, kvHeads, groupSize, queries, keys, qkDim } = problemShape(problem);
  const ofHead = Math.max(1, groupSize * queries * keys * qkDim);
  const all = batch * kvHeads;
  const heads = Math.min(all, Math.max(1, Math.floor(mostProducts / ofHead)));
  const count = Math.min(keys, Math.max(1, Math.floor(mostKeys / Math.max(1, heads))));
  return Array.from({ length: heads }, (_, i) => Math.floor(((i + 0.5) * all) / heads)).flatMap(
    (head) =>
      Array.from({ length: count }, (_, i) => ({
        batch: Math.floor(head / kvHeads),
        head: head % kvHeads,
        row: Math.floor(((i + 0.5) * keys) / count),
      })),
  );
}

/** The numbers of an input by rows. */
function numbersOf({ elementOf }: ContractOutput, tensor: Tensor, columns: number): NumbersOf {
  return ({ batch, head, row }) =>
    Float64Array.from({ length: columns }, (_, column) => {
      const element = elementOf(batch, head, row, column);
      return decodeTensor(tensor, element, element + 1)[0];
    });
}

/** What a kernel is given; null where that is no dO. */
function inputsOf(
  { result: { opened } }: FollowedRun,
  { problem, given }: AttentionContract,
): GradientInputs | null {
  const { vDim } = problemShape(problem);
  const read = (name: string, columns: number) => {
    const input = given.find((one) => one.name === name);
    const tensor = input && opened.tensors.get(input.tensor);
    return input === undefined || tensor === undefined
      ? null
      : numbersOf(input, tensorOf(tensor), columns);
  };
  const dout = read('dout', vDim);
  if (dout === null) return null;
  return { dout, out: read('out', vDim), lse: read('lse', 1), delta: read('delta', 1) };
}

/** The first input with an infinity or a NaN, where it matters; null for none. */
function infiniteInput(problem: Problem, inputs: GradientInputs): string | null {
  for (const name of ['q', 'k', 'v'] as const)
    if (!everyNumber(problem[name], Number.isFinite)) return name;
  const shape = problemShape(problem);
  const { batch, heads, queries } = shape;
  const mask = problemMask(problem, shape);
  for (const name of ['dout', 'out', 'lse', 'delta'] as const)
    for (let i = 0; i < batch * heads * queries; i++) {
      const head = Math.floor(i / queries);
      const place = { batch: Math.floor(head / heads), head: head % heads, row: i % queries };
      const isFinite = inputs[name]?.(place).every(Number.isFinite) ?? true;
      // Nothing of a query without keys is asked for.
      if (!isFinite && mask.ranges(head, i % queries).length > 0) return name;
    }
  return null;
}

/** The reason that a problem's gradients are not compared; null for none. */
function reasonAgainst(problem: Problem, inputs: GradientInputs | null): string | null {
  if (inputs === null) return 'the contract does not say which tensor is dO (dout)';
  if (problem.rows !== undefined) return 'the problem has some of its rows only';
  const { groupSize, queries, keys, qkDim } = problemShape(problem);
  const products = groupSize * queries * keys * qkDim;
  if (products > mostOfHead)
    return `a head of K has ${formatGrouped(products)} products of q and k, of at most ${formatGrouped(mostOfHead)}; compare a smaller problem`;
  const infinite = infiniteInput(problem, inputs);
  return infinite === null ? null : `${infinite} has infinities or NaNs`;
}

function certificateOf({
  gradient,
  weights,
  delta,
  factor,
  ...found
}: GradientComparison): AlgebraCertificate {
  const distance = found.worst?.distance ?? 0;
  const { worstOfOthers } = found;
  return {
    output: gradient,
    rows: found.rows,
    compared: found.compared,
    without: found.withoutMeaning,
    telling: found.telling,
    isFactorTold: true,
    distance,
    worst: placeOfWorst(found.worst),
    idealDistance: found.worstIdeal?.distance ?? 0,
    keptDistance: worstOfOthers && worstOfOthers.distance,
    limit: exactLimit,
    constant: gradient === 'dv' ? '1' : factor.name,
    constantError: factor.fromExact,
    weights,
    delta,
    holds: distance <= exactLimit && factor.name !== null,
  };
}

/**
 * Compares the real values of dQ, dK and dV with the gradients of the launch's problem, on a sample of queries and of keys, in the form
 * that they tell. Where there are idioms, those with idioms taken for functions decide.
 */
export function certifyGradients(
  followed: FollowedRun,
  { kept, taken }: RealValues,
  contract: AttentionContract,
): CertifiedGradients {
  const { problem, outputs } = contract;
  const wanted = gradientNames.filter((name) => outputs.some((one) => one.name === name));
  if (wanted.length === 0) return { algebra: [], uncompared: [] };
  const inputs = inputsOf(followed, contract);
  const reason = reasonAgainst(problem, inputs);
  if (inputs === null || reason !== null)
    return {
      algebra: [],
      uncompared: wanted.map((output) => ({ output, reason: reason ?? 'there is no dO' })),
    };
  const realOf = contractValues(followed, outputs);
  const places = (name: GradientName) => {
    if (!wanted.includes(name)) return [];
    return name === 'dq' ? chooseRows(problem) : chooseKeys(problem);
  };
  const byGradient: PlacesByGradient = { dq: places('dq'), dk: places('dk'), dv: places('dv') };
  const comparisons = compareGradients(problem, inputs, byGradient, {
    decisive: realOf(taken ?? kept),
    others: taken && realOf(kept),
  });
  return { algebra: comparisons.map(certificateOf), uncompared: [] };
}
