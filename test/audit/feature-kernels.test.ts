import { afterAll, describe, expect } from 'vitest';
import { judgeOutputs } from '../../src/audit/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { featureCases, readFeatureCase } from './captured-features.js';
import { expectBelowRounding, expectPass, namesCause } from './damage-checks.js';
import { featureCauses, featureDamages } from './feature-damage.js';

const inTurn = turns(import.meta.url);

/** Every captured output, undamaged and with every damage, with DAMAGE=all (`npm run damage`); else some. */
const everything = process.env['DAMAGE'] === 'all';

describe('outputs of real kernels pass', () => {
  inTurn.each(everything ? featureCases : sampled(featureCases, 4))(
    '$file: $kernel',
    async ({ file, kernel }) => {
      expectPass(await readFeatureCase(file, kernel));
    },
  );
});

interface Count {
  changed: number;
  failed: number;
  named: number;
}

const counts = new Map<string, Count>();

afterAll(() => {
  if (!everything) return;
  console.log('damage | changed | seen | cause named');
  for (const [damage, { changed, failed, named }] of counts)
    console.log([damage, changed, failed, named].join(' | '));
});

const tried = featureCases.flatMap((one) =>
  Object.keys(featureDamages).map((damage) => ({ ...one, damage })),
);

describe('damaged outputs of real kernels', () => {
  inTurn.for(everything ? tried : sampled(tried, 4))(
    '$file: $kernel: $damage',
    async ({ file, kernel, damage }, { skip }) => {
      const given = await readFeatureCase(file, kernel);
      const spoilt = featureDamages[damage](given);
      if (spoilt === null) return skip('the problem has nothing that could be damaged so');
      const exact = given.reference();
      const { verdict } = judgeOutputs(given.problem, spoilt.outputs, { reference: exact });
      const count = counts.get(damage) ?? { changed: 0, failed: 0, named: 0 };
      counts.set(damage, count);
      count.changed++;
      const { diagnosis } = verdict;
      if (verdict.pass) {
        expectBelowRounding(given, spoilt);
        return;
      }
      count.failed++;
      if (diagnosis === null || diagnosis.id === 'unexplained') return;
      const named = namesCause(verdict, featureCauses[damage]);
      if (named) count.named++;
      expect(named, verdict.sentence).toBe(true);
    },
  );
});
