import type { Judgement } from '../../src/audit/index.js';

/** What an audit found wrong first, in a sentence without its full stop; null when nothing. */
export function judgedViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  return verdict.findings[0]?.statement ?? null;
}
