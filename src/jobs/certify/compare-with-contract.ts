import type { LaunchContract } from '../launch/contract-of-launch.js';
import type { Certificate } from './certificate.js';
import { certifyAlgebra } from './certify-algebra.js';
import { certifyGradients } from './certify-gradients.js';
import { certifyRecurrence } from './certify-recurrence.js';
import type { RealValues } from './contract-values.js';
import type { FollowedRun } from './followed-run.js';

/** What real values come to against a contract, of a recurrence, or of O and the LSE and then of gradients; null where there is no contract. */
export function compareWithContract(
  followed: FollowedRun,
  real: RealValues,
  contract: LaunchContract | null,
): Pick<Certificate, 'algebra' | 'uncompared'> {
  if (contract === null) return { algebra: null, uncompared: [] };
  if (contract.kind === 'recurrent') return certifyRecurrence(followed, real, contract);
  const { algebra, uncompared } = certifyGradients(followed, real, contract);
  return { algebra: [...certifyAlgebra(followed, real, contract), ...algebra], uncompared };
}
