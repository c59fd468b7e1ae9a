import { expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { alarmDeviations, judgeOutputs, usualFalseAlarmRate } from '../../../src/audit/index.js';
import { formats, ulp } from '../../../src/formats/index.js';
import { encode } from '../damage.js';
import { bellShaped } from '../gradients/gradient-case.js';
import { filledProblem } from '../../setup/problems.js';
import { withoutLastTile } from './forward-cases.js';

const [queries, keys, dim] = [64, 192, 16] as const;

it('a tile of keys is looked for as closely as roundings of the output allow', () => {
  // In fp32 nothing errs beside the output in bf16.
  const frame = { queries, keys, dim, format: 'fp32' } as const;
  const problem = filledProblem(frame, bellShaped(3));
  const reference = attentionOracle(problem);
  const { out, lse } = reference.quantities;
  const { outputs } = judgeOutputs(
    problem,
    {
      out: encode(out.values, 'bf16', [1, 1, queries, dim]),
      lse: encode(lse.values, 'fp32', [1, 1, queries]),
    },
    { diagnose: false, reference },
  );
  const direction = withoutLastTile(problem, out.values, lse.values);
  const half = (x: number) => ulp(formats.bf16, Math.abs(x)) / 2;
  let [norm, variance] = [0, 0];
  direction.forEach((x, i) => {
    norm += x * x;
    variance += (half(out.values[i]) * x) ** 2 / 3;
  });
  // As many tests as there are rows and tiles, each with a hundredth of the false alarms.
  const deviations = alarmDeviations(queries, usualFalseAlarmRate / 100);
  const { threshold } = outputs.out.structure.find(
    ({ test, scope }) => test === 'key-tile' && scope === 'head',
  )!;
  const explained = (deviations * Math.sqrt(variance)) / norm;
  expect(threshold / explained).toBeLessThan(1.1);
  expect(threshold / explained).toBeGreaterThan(0.7);
});
