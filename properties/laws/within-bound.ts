import type { Law } from '../suite/law.js';
import { judgedViolation } from './judged-violation.js';

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
