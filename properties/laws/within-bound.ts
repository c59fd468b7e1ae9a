import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy, type Judgement } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { NotApplicable, type Law } from './law.js';

/** Exact attention of a problem, each value with a radius as small as audits ask for. */
export function exactAttention(problem: Problem): AttentionReference {
  return attentionOracle(problem, { accuracy: auditAccuracy(problem.q.format) });
}

/**
 * What an audit found wrong first, in a sentence without its full stop; null when nothing.
 * @throws NotApplicable when nothing was held against a bound
 */
export function judgedViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  const found = verdict.findings[0]?.statement ?? null;
  if (found === null && !verdict.judged) throw new NotApplicable('no element has a bound');
  return found;
}

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

/** O and LSE against the oracle: see `judgeOutputs`. */
export const withinBound: Law = {
  statement: 'O and LSE are as near to exact attention as rounding lets them be',
  reason:
    'Every operation of a correct kernel errs by a rounding at most, and what these add up to at an element, over a row, a tile and a head, is bounded.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  violation: async ({ problem }, { run, judge }) => judgedViolation(judge(await run(problem))),
};

/**
 * Every configuration that is promised beside the kernel's own, O and LSE against the oracle as in
 * `withinBound`, by the bounds of that configuration. Choices go round them, up to 60.
 */
export const configurations: Law = {
  statement: 'O and LSE stay within rounding in every configuration',
  reason:
    'Thresholds, tile sizes, tunings and splits are a matter of speed; what is right in one of them only is a bug that another machine will show.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 60,
  notFor: (promises) =>
    Object.keys(promises.configurations).length === 0
      ? 'no configurations beside its own are promised'
      : null,
  violation: async ({ problem, choice }, { runConfiguration, judge, promises }) => {
    const names = Object.keys(promises.configurations);
    if (names.length === 0) throw new NotApplicable('there is no other configuration');
    const name = names[choice % names.length];
    const judged = judgedViolation(judge(await runConfiguration(name, problem)));
    return judged && `with ${name}, ${judged}`;
  },
};
