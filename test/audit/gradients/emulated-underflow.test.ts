import { expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import { attentionGradients } from '../../../oracles/index.js';
import { auditGradients } from '../../../src/audit/index.js';
import { decodeTensor, type FormatName } from '../../../src/formats/index.js';
import { fromEnvironment, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { backwardKernel, correctBackwards } from '../../kernels/gradients/index.js';

/** How many problems a run tries: SMALL_GRADIENTS, else few enough for a default run. */
const count = fromEnvironment('SMALL_GRADIENTS', 6);
const orders = Object.entries(correctBackwards);

/** What an audit says against a correct backward pass whose dO, and the numbers that it rounds on its way, are among the smallest of their format. */
function alarmOf(seed: number, index: number): readonly string[] {
  const random = randomValues(seed + 7919 * index);
  const pick = <T>(...list: readonly T[]): T => list[random.integer(0, list.length - 1)];
  const format = pick<FormatName>('fp16', 'fp16', 'bf16');
  const [queries, keys] = pick([16, 400], [40, 90], [3, 200], [120, 8]);
  const dim = pick(8, 16);
  const heads = pick(1, 2);
  const spread = pick(0, 0.01, 1, 1, 6);
  const problem = filledProblem(
    { format, heads, kvHeads: pick(1, heads), queries, keys, dim },
    {
      q: () => spread * random.normal(),
      k: () => random.normal(),
      v: pick(
        () => random.normal(),
        () => 1 + random.uniform(),
        () => 1.203125,
      ),
    },
    { scale: pick(1 / Math.sqrt(dim), 0.3), causal: random.uniform() < 0.2 },
  );
  const lowest = format === 'fp16' ? -30 : -140;
  const size = 2 ** (lowest + 18 * random.uniform());
  const look = pick(
    () => random.normal(),
    () => 1,
    () => 1 + random.uniform(),
  );
  const dout = tensor(format, [1, heads, queries, dim], () => size * look());
  const [order, options] = orders[index % orders.length];
  const { out, lse, ...gradients } = backwardKernel({ ...options, seed: index })(problem, dout);
  const forward = random.uniform() < 0.5 ? {} : { out, lse };
  const given = { dout, ...forward, ...gradients };
  const { verdict } = auditGradients(problem, given, { diagnose: false });
  if (verdict.findings.length === 0) return [];
  return [
    `${index}: ${order}, ${format}, ${heads} × ${queries} × ${keys} × ${dim}, scale ${problem.scale}, Q × ${spread}, dO 2^${Math.log2(size).toFixed(1)}: ${verdict.sentence}`,
  ];
}

it(`${count} correct backward passes pass where what they round is lost`, () => {
  const alarms = Array.from({ length: count }, (_, index) => alarmOf(testSeed, index));
  expect(alarms.flat()).toEqual([]);
}, 3.6e6);

// What another factor leaves of dS is another sum; and dQ is rounded as that sum is, not as the exact one.
it.each([
  [77, 37],
  [77, 332],
])(
  'a kernel that scales dQ last passes among rows that are nearly equal (%i, %i)',
  (seed, index) => {
    expect(alarmOf(seed, index)).toEqual([]);
  },
);

it('dQ is nothing where a kernel scales dS first, which loses all of it', () => {
  const random = randomValues(11);
  const problem = filledProblem(
    { format: 'fp16', queries: 400, keys: 8, dim: 16 },
    { q: () => 0, k: () => 32 * random.normal(), v: () => random.normal() },
    { scale: 0.25 },
  );
  const dout = tensor('fp16', [1, 1, 400, 16], () => 2 ** -23.5 * random.sign());
  const kernel = backwardKernel({ scalesFirst: true, seed: 3 });
  const { dq } = kernel(problem, dout);
  const lost = decodeTensor(dq).filter((x) => x === 0).length;
  const all = attentionGradients(problem, dout).dq!.values;
  expect(lost / all.length).toBeGreaterThan(0.8);
  expect(all.filter((x) => Math.abs(x) > 2 ** -25).length / all.length).toBeGreaterThan(0.8);
  const { verdict } = auditGradients(problem, { dout, dq }, { diagnose: false });
  expect(verdict.findings.map(({ statement }) => statement)).toEqual([]);
});
