import type { Finding, Judgement } from '../../src/audit/index.js';

/** The tests that hold for any roundings, however they depend on one another. */
const worstCaseTests: readonly Finding['test'][] = [
  'non-finite',
  'element-bound',
  'lse-non-finite',
  'lse-bound',
];

/**
 * What the worst-case tests of an audit found wrong, in a sentence without its full stop; null when
 * nothing. For problems whose values are so alike that roundings are no longer independent, which is the
 * premise of the other tests.
 */
export function worstCaseViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  const found = verdict.findings.find(({ test }) => worstCaseTests.includes(test));
  return found?.statement ?? null;
}
