import type { Judgement } from '../../src/audit/index.js';

/** What an audit found wrong, in a sentence without its full stop; null when nothing. */
export function judgedViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  if (verdict.pass) return null;
  return verdict.sentence.replace(/^FAIL: /, '').replace(/\.$/, '');
}
