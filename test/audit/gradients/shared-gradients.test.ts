import { describe, expect, it } from 'vitest';
import { attentionGradients, attentionOracle } from '../../../oracles/index.js';
import {
  anyGradientPremises,
  auditGradients,
  measureGradients,
  type GradientDeclaration,
} from '../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { testSeed } from '../../setup/effort.js';
import { normalProblem, normalTensor, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, correctBackwards, drawDout } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const sizes = { batch: 2, heads: 4, kvHeads: 2, queries: 50, keys: 70 } as const;

/** A problem with a sink, a softcap and a bias of some shape. */
function biased(biasShape: readonly number[], features: Partial<Problem> = {}): Problem {
  const random = seededRandom(testSeed);
  return {
    ...normalProblem(random, sizes),
    softcap: 15,
    bias: normalTensor(random, 'bf16', biasShape, 1),
    sink: { logits: normalTensor(random, 'fp32', [sizes.heads], 2), inLse: true },
    ...features,
  };
}

/** The patterns of a tensor in bf16, so many times. */
function repeated({ data }: Tensor, times: number): Uint16Array {
  const patterns = data as Uint16Array;
  return Uint16Array.from(
    { length: times * patterns.length },
    (_, i) => patterns[i % patterns.length],
  );
}

function judged(
  problem: Problem,
  order = 'ascending',
  changes: Readonly<Record<string, Tensor>> = {},
  declared: GradientDeclaration = {},
) {
  const dout = drawDout(seededRandom(testSeed + 1), problem);
  const { out, lse, dbias, dsink } = backwardKernel(correctBackwards[order])(problem, dout);
  const tensors = { dout, out, lse, dsink: dsink ?? null, dbias: dbias ?? null, ...changes };
  return auditGradients(problem, tensors, { declared });
}

describe('gradients of biases and of sinks', () => {
  inTurn.each([
    ['of every pair', [2, 4, 50, 70]],
    ['shared by batch and heads', [50, 70]],
    ['of keys', [2, 1, 1, 70]],
    ['of queries', [1, 4, 50, 1]],
    ['of heads', [4, 1, 1]],
    ['one for all', [1]],
  ] as const)(
    'pass where the bias is %s, and their errors are near what is expected',
    (_, shape) => {
      for (const order of ['ascending', 'tiles'] as const) {
        const { delta = 'stored-output' } = correctBackwards[order];
        expect(judged(biased(shape), order).verdict.pass).toBe(true);
        const { verdict, gradients } = judged(biased(shape), order, {}, { delta });
        expect(verdict.sentence).toMatch(/^PASS: dBias and dSink stay within/);
        expect(gradients.map(({ quantity }) => quantity.name)).toEqual(['dbias', 'dsink']);
        for (const { elements, spread, quantity } of gradients) {
          if (process.env['GRADIENTS_TABLE'] !== undefined)
            console.info(
              '@',
              String(shape),
              order,
              quantity.name,
              elements.worstRatio,
              spread.measured / spread.expected,
            );
          expect(elements.unbounded).toBe(0);
          expect(elements.worstRatio).toBeGreaterThan(0);
          // Of kernels that make the roundings that are admitted: a framework's.
          if (elements.elements >= 50 && delta === 'weights')
            expect(spread.measured / spread.expected).toBeGreaterThan(0.2);
          expect(spread.measured / spread.expected).toBeLessThan(2);
        }
      }
    },
  );

  inTurn('fail where dSink of a D of the stored O is 2 % large', () => {
    for (let i = 0; i < 4; i++) {
      // Always the same: a sum that cancels may be so small that no factor is seen.
      const random = seededRandom(1 + i);
      const problem = {
        ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 128, keys: 128 }),
        sink: { logits: normalTensor(random, 'fp32', [2]), inLse: true },
      };
      const dout = drawDout(random, problem);
      const given = backwardKernel()(problem, dout);
      const values = decodeTensor(given.dsink!);
      const times = (factor: number): Tensor => ({
        ...given.dsink!,
        data: Float32Array.from(values, (x) => factor * x),
      });
      const passes = (dsink: Tensor, declared: GradientDeclaration) =>
        auditGradients(problem, { dout, ...given, dsink }, { declared, diagnose: false }).verdict
          .pass;
      const declared = { delta: 'stored-output' };
      expect(passes(times(1), declared)).toBe(true);
      expect(passes(times(1.02), declared)).toBe(false);
      // A framework rounds the terms of a sum that cancels: so much less is seen of a kernel of which nothing is known.
      expect(passes(times(1), {})).toBe(true);
      expect(passes(times(10), {})).toBe(false);
    }
  });

  inTurn.each([
    ['shared by batch and heads', [50, 70]],
    ['of queries', [1, 4, 50, 1]],
  ] as const)('have bounds that add up of techniques where the bias is %s', (_, shape) => {
    const problem = biased(shape);
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const { gradients, techniques } = measureGradients(problem, dout, {
      premises: anyGradientPremises(problem, 'bf16'),
      given: { out: null, lse: null },
      shared: { dbias: 'bf16', dsink: 'fp32' },
    });
    for (const name of ['dbias', 'dsink'] as const) {
      const { bound, exact } = gradients[name]!;
      const table = techniques[name]!;
      const count = bound.total.length;
      const total = bound.total.reduce((sum, x, i) => sum + x - exact.radius[i], 0);
      const variance = bound.deviation.reduce((sum, x) => sum + x * x, 0);
      expect(table.total.worst * count).toBeCloseTo(total, 10);
      expect(table.total.rms ** 2 * count).toBeCloseTo(variance, 12);
      const ofLines = (of: 'worst' | 'share') =>
        table.techniques.reduce((sum, line) => sum + line[of], 0);
      expect(ofLines('worst') / table.total.worst).toBeCloseTo(1, 10);
      expect(ofLines('share')).toBeCloseTo(1, 10);
      for (const { technique, worst, share } of table.techniques) {
        expect(worst, technique).toBeGreaterThan(0);
        expect(share, technique).toBeLessThan(0.9);
      }
      expect(table.techniques.map(({ technique }) => technique)).toEqual([
        'lse-input',
        'delta',
        'p-recompute',
        'p-round',
        'dp-accumulate',
        'ds-round',
        `${name}-accumulate`,
        'scale',
        'output-round',
      ]);
    }
  });

  inTurn(
    'may be off by one rounding of every term, all one way, and not by many times that',
    () => {
      const problem = biased([50, 70]);
      const dout = drawDout(seededRandom(testSeed + 1), problem);
      const { bias } = problem;
      // dS of every pair is the gradient of a bias of every pair.
      const every = { ...bias!, shape: [2, 4, 50, 70], data: repeated(bias!, 8) };
      const { dbias, mean } = attentionGradients({ ...problem, bias: every }, dout);
      const { denominator } = attentionOracle(problem);
      const logits = decodeTensor(problem.sink!.logits);
      // The smallest that half an ulp of bf16 can be beside a number.
      const half = (x: number) => x + 2 ** -9 * Math.abs(x);
      const sums = (term: (x: number) => number) => {
        const ofBias = new Float64Array(50 * 70);
        dbias!.values.forEach((x, i) => (ofBias[i % ofBias.length] += term(x)));
        const ofSink = new Float64Array(4);
        mean.values.forEach((x, row) => {
          const head = Math.floor(row / 50) % 4;
          ofSink[head] += term(-Math.exp(logits[head] - denominator[row]) * x);
        });
        const tensor = (shape: readonly number[], data: Float64Array): Tensor => ({
          format: 'fp64',
          shape,
          data,
        });
        const { gradients } = auditGradients(problem, {
          dout,
          dbias: tensor([50, 70], ofBias),
          dsink: tensor([4], ofSink),
        });
        return gradients.map(({ elements }) => elements);
      };
      for (const { worstRatio } of sums((x) => x)) expect(worstRatio).toBeLessThan(1e-6);
      for (const { outside, worstRatio } of sums(half)) {
        expect(outside).toBe(0);
        expect(worstRatio).toBeGreaterThan(1 / 32);
      }
      for (const { worstRatio } of sums((x) => x + 32 * (half(x) - x)))
        expect(worstRatio).toBeGreaterThan(1);
    },
  );

  inTurn('are exact zeros where a bias hides the keys', () => {
    const problem = biased([1, 4, 50, 70]);
    const { bias } = problem;
    const data = Float64Array.from(decodeTensor(bias!), (x, i) => (i % 7 === 3 ? -Infinity : x));
    const hiding = { ...problem, bias: { format: 'fp64', shape: bias!.shape, data } } as const;
    expect(judged(hiding).verdict.pass).toBe(true);
    const dout = drawDout(seededRandom(testSeed + 1), hiding);
    const { dbias } = backwardKernel()(hiding, dout);
    const given = decodeTensor(dbias!);
    given[3] = 2 ** -130;
    const { verdict } = judged(hiding, 'ascending', {
      dbias: { ...dbias!, data: encodeFromFloat64(formats.bf16, given) },
    });
    expect(verdict.findings.find(({ test }) => test === 'dbias-bound')?.statement).toMatch(
      /^1 of 14000 elements of dBias are not zero where nothing adds to them, .* at head 0, query 0, key 3$/,
    );
  });

  inTurn('tell where they are off', () => {
    const problem = biased([2, 1, 1, 70]);
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const { dbias, dsink } = backwardKernel()(problem, dout);
    const off = (tensor: Tensor, at: number, by: number): Tensor => ({
      format: 'fp64',
      shape: tensor.shape,
      data: decodeTensor(tensor).map((x, i) => (i === at ? x + by : x)),
    });
    const { verdict } = judged(problem, 'ascending', {
      dbias: off(dbias!, 75, 1),
      dsink: off(dsink!, 2, -1),
    });
    const [ofBias, ofSink] = ['dbias-bound', 'dsink-bound'].map(
      (test) => verdict.findings.find((one) => one.test === test)?.statement,
    );
    expect(ofBias).toMatch(/^1 of 140 elements of dBias err .* at batch 1, head 0, key 5$/);
    expect(ofSink).toMatch(/^1 of 4 elements of dSink err .* at head 2$/);
    expect(verdict.diagnosis?.id).toBe('unexplained');
  });

  it('are refused in another shape, and of what there is not', () => {
    const problem = biased([4, 1, 70]);
    const tensor = (shape: readonly number[]): Tensor => ({
      format: 'fp32',
      shape,
      data: new Float32Array(shape.reduce((a, b) => a * b, 1)),
    });
    const refusal = (given: Problem, changes: Readonly<Record<string, Tensor>>) => {
      try {
        judged(given, 'ascending', changes);
      } catch (error) {
        if (error instanceof RequestError) return error.message;
        throw error;
      }
      return 'judged';
    };
    expect(refusal(problem, { dbias: tensor([2, 4, 50, 70]) })).toBe(
      'dBias has shape [2, 4, 50, 70] but the bias has [4, 1, 70]; give it in that shape, summed over what the bias is broadcast to',
    );
    expect(refusal(problem, { dsink: tensor([3]) })).toMatch(
      /^dSink has shape \[3\] but the sink has \[4\]/,
    );
    expect(refusal(problem, { dsink: tensor([1, 4, 1, 1]) })).toBe('judged');
    const plain = normalProblem(seededRandom(testSeed), sizes);
    expect(refusal(plain, { dsink: tensor([4]) })).toMatch(
      /^dsink is to be judged, but the problem has no sink/,
    );
  });
});
