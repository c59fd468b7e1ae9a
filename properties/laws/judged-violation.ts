import type { Judgement } from '../../src/audit/index.js';
import { NotApplicable } from '../suite/not-applicable.js';

/**
 * What an audit found wrong first, in a sentence without its full stop; null when nothing.
 * @throws NotApplicable when nothing was held against a bound
 */
export function judgedViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  const found = verdict.findings[0]?.statement ?? null;
  if (found === null && !verdict.judged) throw new NotApplicable('no element has a bound');
  return found;
}
