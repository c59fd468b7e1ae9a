import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromEnvironment, scaled } from '../setup/effort.js';
import { roundedGradientsCase, roundedOutputsCase } from './rounded-exact.js';

/**
 * The law that a correctly rounded exact value passes: every quantity, every format, from deep underflow to overflow.
 * ROUNDED_AUDITS says how many of each kind are made.
 */
const audits = fromEnvironment('ROUNDED_AUDITS', 0);

describe('a correctly rounded exact value passes', () => {
  it.each([
    ['gradients', roundedGradientsCase, 8],
    ['outputs, LSE and partial results', roundedOutputsCase, 4],
  ] as const)(
    'as %s',
    (_, caseOf, count) => {
      let made = 0;
      const seed = fc.noShrink(fc.noBias(fc.nat({ max: 2 ** 31 - 1 })));
      fc.assert(
        fc.property(seed, (number) => {
          const { words, findings } = caseOf(number);
          made++;
          expect(findings(), `${number}: ${words}`).toEqual([]);
        }),
        { numRuns: audits === 0 ? scaled(count) : audits },
      );
      if (audits > 0) console.info(`@ ${made} audits of correctly rounded exact values, no alarm`);
    },
    2e7,
  );
});
