import type { OutputReach } from '../../meaning/certify/index.js';
import { certifyAttentionInfluence } from './certify-attention-influence.js';
import { certifyRecurrentInfluence } from './certify-recurrent-influence.js';
import type { ToldRun } from './told-contract.js';

/** What reaches the results of a run that must not, and does not that must; null where nothing says what the tensors are. */
export function certifyInfluence({ run, told }: ToldRun): readonly OutputReach[] | null {
  if (told === null) return null;
  return told.kind === 'recurrent'
    ? certifyRecurrentInfluence(run, told.contract)
    : certifyAttentionInfluence(run, told);
}
