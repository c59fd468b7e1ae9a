import { describe, expect } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import { anyKernelArithmetic, auditAccuracy, judgeOutputs } from '../../../src/audit/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import { judgeOutputs as judgeBounds } from '../bounds/violations.js';
import { decode } from '../damage.js';
import { fromEnvironment, scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { hostileFeatures, hostileProblem, type HostileFeature } from './hostile-problem.js';
import { liberalKernel, type Liberties } from './liberal-kernel.js';

const inTurn = turns(import.meta.url);

const problems = fromEnvironment('HOSTILE_PROBLEMS', scaled(1));

function choose<T>(random: RandomValues, values: readonly T[]): T {
  return values[random.integer(0, values.length - 1)];
}

function anyLiberties(random: RandomValues): Liberties {
  return {
    tile: choose(random, [1, 16, 64, 1000]),
    order: choose(random, ['ascending', 'descending']),
    base: choose(random, [2, 'e']),
    scale: choose(random, ['before', 'after']),
    alibi: choose(random, ['distance', 'key']),
    sink: choose(random, ['in-maximum', 'at-the-end']),
    dropout: choose(random, ['before-rounding', 'at-the-end']),
    division: choose(random, ['first', 'last']),
  };
}

/** One feature, or several that go together. */
function someFeatures(random: RandomValues, first: HostileFeature): HostileFeature[] {
  const others = hostileFeatures.filter(
    (feature) => random.uniform() < 0.15 && !feature.endsWith('bias'),
  );
  return [...new Set([first, ...others])];
}

describe.each(hostileFeatures)('a correct kernel on a hostile problem with %s', (feature) => {
  inTurn.each(Array.from({ length: problems }, (_, i) => i))(
    'is within its bounds, and no test is alarmed: %d',
    (index) => {
      const random = randomValues(testSeed + 1000 * index + hostileFeatures.indexOf(feature));
      const problem = hostileProblem(random, someFeatures(random, feature));
      const outputFormat = choose<FormatName>(random, ['fp32', problem.q.format]);
      const liberties = anyLiberties(random);
      const outputs = liberalKernel(problem, outputFormat, liberties);
      const reference = attentionOracle(problem, { accuracy: auditAccuracy(outputFormat) });
      const arithmetic = anyKernelArithmetic(problem, outputFormat);
      const [out, lse] = [decode(outputs.out), decode(outputs.lse!)];
      const hasLse = !lse.some(Number.isNaN);
      const what = `${JSON.stringify(liberties)} ${outputFormat}`;
      const found = judgeBounds(problem, reference, arithmetic, [
        { what, out, lse: hasLse ? lse : null },
      ]);
      expect(found.violations).toEqual([]);
      const given = { out: outputs.out, lse: hasLse ? outputs.lse : null };
      const { verdict } = judgeOutputs(problem, given, { reference, diagnose: false });
      expect(verdict.findings, what).toEqual([]);
    },
  );
});
