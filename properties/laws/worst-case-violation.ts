import type { Judgement } from '../../src/audit/index.js';
import { NotApplicable } from '../suite/not-applicable.js';

/**
 * What the worst-case tests of an audit found wrong, in a sentence without its full stop; null when
 * nothing. For problems whose values are so alike that roundings are no longer independent, which is the
 * premise of the other tests.
 * @throws NotApplicable when nothing was held against a bound
 */
export function worstCaseViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  const found = verdict.findings.find(({ isWorstCase }) => isWorstCase);
  if (found === undefined && !verdict.judged) throw new NotApplicable('no element has a bound');
  return found?.statement ?? null;
}
