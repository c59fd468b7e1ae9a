import { describe, expect, it } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { fromEnvironment, sampled, testSeed } from '../../setup/effort.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import {
  featureProblems,
  normalProblem,
  normalTensor,
  seededRandom,
} from '../../kernels/features/index.js';
import {
  backwardKernel,
  correctBackwards,
  drawDout,
  faultyBackwards,
} from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** How many random problems a run tries: GRADIENT_PROBLEMS, else few enough for a default run. */
const count = fromEnvironment('GRADIENT_PROBLEMS', 6);
type Random = ReturnType<typeof seededRandom>;
const orders = Object.entries(correctBackwards);

/** A small problem of normal numbers with some features. */
function smallProblem(random: Random): Problem {
  const one = <T>(...values: readonly T[]) => values[Math.floor(values.length * random())];
  const maybe = (features: Partial<Problem>) => (random() < 0.3 ? features : {});
  const heads = one(1, 2, 4);
  const sizes = {
    batch: one(1, 1, 2),
    heads,
    kvHeads: one(1, heads),
    queries: 1 + Math.floor(40 * random()),
    keys: 1 + Math.floor(90 * random()),
    dim: one(8, 16),
    vDim: one(8, 16),
    format: one<FormatName>('bf16', 'bf16', 'fp16', 'fp32'),
  };
  const { queries, keys } = sizes;
  const plain = normalProblem(random, sizes);
  return {
    ...plain,
    scale: plain.scale * one(1, 1, 4, 0.1),
    ...maybe({ causal: true }),
    ...maybe({ softcap: one(1, 20) }),
    ...maybe({ window: { left: 10, right: one(0, 5) } }),
    ...maybe({ prefix: 3 }),
    ...maybe({
      bias: normalTensor(
        random,
        one<FormatName>('bf16', 'fp32'),
        [one(1, sizes.batch), one(1, heads), one(1, queries), one(1, keys, keys)],
        one(1, 8),
      ),
    }),
    ...maybe({ alibiSlopes: normalTensor(random, 'fp32', [heads], 0.3) }),
    ...maybe({
      sink: { logits: normalTensor(random, 'fp32', [heads], 3), inLse: one(true, false) },
    }),
    ...maybe({
      dropout: {
        kept: {
          shape: [heads, queries, keys],
          data: new Uint8Array(heads * queries * keys).map(() => (random() < 0.75 ? 1 : 0)),
        },
        probability: 0.25,
      },
    }),
  };
}

/** Larger problems, one of each feature, which only longer campaigns try; a sample of rows has no dK and dV. */
const larger = Object.keys(featureProblems).filter(
  (name) => featureProblems[name](seededRandom(testSeed)).rows === undefined,
);

/** Whether a gradient is of a bias or of sinks. */
const isShared = (of: string) => of === 'dbias' || of === 'dsink';

/** A random problem; of long campaigns every fourth a larger one. */
function drawn(index: number) {
  const random = seededRandom(testSeed + 7919 * index);
  const isLarger = count > 30 && index % 4 === 3;
  const problem = isLarger
    ? featureProblems[larger[(index >> 2) % larger.length]](random)
    : smallProblem(random);
  return { problem, dout: drawDout(random, problem) };
}

describe('audits of plain backward kernels', () => {
  it(`pass ${count} problems in five orders of operations`, () => {
    const alarms: string[] = [];
    for (let index = 0; index < count; index++) {
      const { problem, dout } = drawn(index);
      const [order, options] = orders[Math.floor(index / 3) % orders.length];
      const { out, lse, ...gradients } = backwardKernel({ ...options, seed: index })(problem, dout);
      const forward = index % 2 === 0 ? {} : { out, lse };
      const { verdict } = auditGradients(
        problem,
        { dout, ...forward, ...gradients },
        { diagnose: false },
      );
      if (!verdict.pass) alarms.push(`problem ${index}, ${order}: ${verdict.sentence}`);
    }
    expect(alarms).toEqual([]);
  }, 3.6e6);

  const isTable = process.env['GRADIENTS_TABLE'] !== undefined;
  const faults = faultyBackwards.map(({ name }) => name);
  inTurn.each(isTable ? faults : sampled(faults, 2))('fail for %s on its example', (name) => {
    const { kernel, example, wrong } = faultyBackwards.find((one) => one.name === name)!;
    const problem = example(seededRandom(testSeed));
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const { verdict } = auditGradients(
      problem,
      { dout, ...kernel(problem, dout) },
      { diagnose: isTable },
    );
    if (isTable) console.info(`@ ${name} | ${verdict.diagnosis?.id} | ${verdict.sentence}`);
    expect(verdict.pass).toBe(false);
    // ⟨Q, dQ⟩ = ⟨K, dK⟩ is told of with dK, whichever is wrong; what is wrong in D or P is so in dBias and dSink too.
    for (const { quantity, test } of verdict.findings)
      if (!test.endsWith('-pairing') && (wrong.some(isShared) || !isShared(quantity)))
        expect(wrong).toContain(quantity);
    for (const of of wrong)
      expect(
        verdict.findings.some(({ quantity }) => quantity === of),
        of,
      ).toBe(true);
  });
});
