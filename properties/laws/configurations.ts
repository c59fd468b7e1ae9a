import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { judgedViolation } from './judged-violation.js';

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
