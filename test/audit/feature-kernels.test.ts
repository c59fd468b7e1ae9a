import { afterAll, describe, expect, it } from 'vitest';
import { judgeOutputs, KernelBound } from '../../src/audit/index.js';
import { sampled } from '../setup/effort.js';
import { featureCases, readFeatureCase } from './captured-features.js';
import { decode } from './damage.js';
import { featureCauses, featureDamages } from './feature-damage.js';

/** Every captured output, undamaged and with every damage, with DAMAGE=all (`npm run damage`); else some. */
const everything = process.env['DAMAGE'] === 'all';

describe('outputs of real kernels pass', () => {
  it.each(everything ? featureCases : sampled(featureCases, 8))(
    '$file: $kernel',
    async ({ file, kernel }) => {
      const { problem, outputs, reference } = await readFeatureCase(file, kernel);
      const { verdict } = judgeOutputs(problem, outputs, { reference: reference() });
      expect(verdict.findings).toEqual([]);
      expect(verdict.pass).toBe(true);
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
  it.for(everything ? tried : sampled(tried, 8))(
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
      const causes = featureCauses[damage];
      if (verdict.pass) {
        // What passes must be small: below the rounding of P and O at every element.
        const bound = new KernelBound(given.problem, exact, given.outputs.out.format);
        const before = decode(given.outputs.out);
        decode(spoilt.outputs.out).forEach((x, i) => {
          const { weightRounding } = bound.row(Math.floor(i / exact.shape.vDim));
          const rounding =
            weightRounding * exact.quantities.out.magnitude[i] +
            2 ** -8 * Math.abs(exact.quantities.out.values[i]);
          expect(Math.abs(x - before[i])).toBeLessThanOrEqual(rounding);
        });
        return;
      }
      count.failed++;
      if (diagnosis === null || diagnosis.id === 'unexplained') return;
      const named = [diagnosis.id, ...diagnosis.equivalents].some((id) => causes.includes(id));
      if (named) count.named++;
      expect(named, verdict.sentence).toBe(true);
    },
  );
});
