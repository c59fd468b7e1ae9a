import {
  compareRecurrence,
  constantsText,
  type RecurrentComparison,
  type RecurrentOutput,
  type RecurrentOutputComparison,
} from '../../meaning/recurrent/index.js';
import type { RecurrentProblem } from '../../problem/index.js';
import { everyNumber } from '../launch/launch-tensors.js';
import type { RecurrentContract } from '../launch/recurrent-contract.js';
import type { AlgebraCertificate, Certificate } from './certificate.js';
import { exactLimit, placeOfWorst } from './certify-algebra.js';
import { contractValues, type RealValues } from './contract-values.js';
import type { FollowedRun } from './followed-run.js';

/** Gates up to here have decays that double-doubles hold; larger ones are no decays. */
const largestGate = 500;

/** The reason that a recurrence is not compared; null for none. */
function reasonAgainst(problem: RecurrentProblem): string | null {
  const { q, k, v, g, beta, gateInputs, strengthLogits, initialState } = problem;
  const { aLog, a, dtBias } = gateInputs ?? {};
  const ofGates = { A_log: aLog, a, dt_bias: dtBias, b: strengthLogits };
  const tensors = { q, k, v, beta, ...ofGates, initial_state: initialState };
  for (const [name, tensor] of Object.entries(tensors))
    if (tensor !== undefined && !everyNumber(tensor, Number.isFinite))
      return `${name} has infinities or NaNs`;
  if (g !== undefined && !everyNumber(g, (x) => x <= largestGate))
    return `g has NaNs or gates above ${largestGate}`;
  return null;
}

function certificateOf(
  found: RecurrentOutputComparison,
  { constants, gateError, scale, isGateTold }: RecurrentComparison,
): AlgebraCertificate {
  const distance = found.worst?.distance ?? 0;
  const ofOut = found.output === 'out' ? scale : null;
  const isKnown = ofOut === null || ofOut.name !== null;
  const { worstOfOthers } = found;
  return {
    output: found.output,
    rows: found.rows,
    compared: found.compared,
    without: found.withoutMeaning,
    telling: found.telling,
    isFactorTold: isGateTold,
    distance,
    worst: placeOfWorst(found.worst),
    idealDistance: found.worstIdeal?.distance ?? 0,
    keptDistance: worstOfOthers && worstOfOthers.distance,
    limit: exactLimit,
    constant: isKnown ? constantsText(constants, ofOut?.name ?? null) : null,
    constantError: isKnown ? gateError : ofOut.fromExact,
    weights: null,
    delta: null,
    holds: distance <= exactLimit && isKnown,
  };
}

/**
 * Compares the real values of the output and the final state with the recurrence of the launch, with the constants that they tell.
 * Where there are idioms, those with idioms taken for functions decide.
 */
export function certifyRecurrence(
  followed: FollowedRun,
  { kept, taken }: RealValues,
  { problem, outputs }: RecurrentContract,
): Pick<Certificate, 'algebra' | 'uncompared'> {
  const wanted = outputs.map(({ name }) => name as RecurrentOutput);
  const reason = reasonAgainst(problem);
  if (reason !== null)
    return { algebra: [], uncompared: wanted.map((output) => ({ output, reason })) };
  const realOf = contractValues(followed, outputs);
  const comparison = compareRecurrence(problem, wanted, {
    decisive: realOf(taken ?? kept),
    others: taken && realOf(kept),
  });
  return {
    algebra: comparison.outputs.map((output) => certificateOf(output, comparison)),
    uncompared: [],
  };
}
