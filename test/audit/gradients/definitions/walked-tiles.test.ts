import { describe, expect, it } from 'vitest';
import { attentionOracle, gradientOracle } from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  createGradientBounds,
  measureGradients,
  type GradientPremises,
} from '../../../../src/audit/gradients/index.js';
import { createPairReader } from '../../../../src/audit/gradients/bounds/head-tiles.js';
import { pairArithmetic } from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import {
  keysOf,
  problemMask,
  problemShape,
  type Problem,
  type Tensor,
} from '../../../../src/problem/index.js';
import { lazily } from '../../../../src/reuse.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { expectBounds, plainBounds } from './plain-bounds.js';

const seed = (testSeed % 1_000_003) + 29;
const given = { out: null, lse: null };

/** A tensor whose row of a head is that of an earlier row, where there is one. */
function repeated(of: Tensor, earlier: (row: number) => number): Tensor {
  const [, , rows, dim] = of.shape;
  const values = decodeTensor(of);
  return tensor(of.format, of.shape, (i) => {
    const row = Math.floor(i / dim);
    const first = row - (row % rows);
    return values[(first + earlier(row % rows)) * dim + (i % dim)];
  });
}

describe('bounds are those of the pairs one by one', () => {
  it.each<[string, Partial<Problem>, Partial<GradientPremises>]>([
    ['where rows see keys with gaps between', { prefix: 2, window: { left: 1, right: 1 } }, {}],
    ['of a framework', { prefix: 2, window: { left: 1, right: 1 } }, { delta: 'weights' }],
  ])('%s, and queries and keys that are equal', (what, changes, ofKernel) => {
    const random = bellShaped(seed);
    const frame = { batch: 2, heads: 2, kvHeads: 1, queries: 9, keys: 9, dim: 3, vDim: 2 };
    const drawn = filledProblem({ ...frame, format: 'fp32' }, random, changes);
    const same = (row: number) => (row === 8 ? 7 : row === 5 ? 0 : row);
    const dO = tensor('fp32', [2, 2, 9, 2], random);
    // Rows 0, 5 and 6 of Q are equal, but of dO 0 and 5 alone.
    const problem = {
      ...drawn,
      q: repeated(drawn.q, (row) => (row === 6 ? 0 : same(row))),
      k: repeated(drawn.k, same),
      v: repeated(drawn.v, (row) => (row === 3 ? 0 : same(row))),
    };
    const dout = repeated(dO, same);
    const reference = attentionOracle(problem);
    const premises = { ...anyGradientPremises(problem, 'fp32'), ...ofKernel };
    const of = { problem, dout, reference, premises, given };
    const groups = [...gradientOracle(problem, dout)];
    const boundsOf = createGradientBounds(of);
    plainBounds(of, groups).forEach((wanted, i) => {
      const found = boundsOf(groups[i]);
      expectBounds(found.dk!, wanted.dk, `${what}: dK`);
      expectBounds(found.dv!, wanted.dv, `${what}: dV`);
      wanted.heads.forEach(({ dq }, head) => {
        expectBounds(found.heads[head].dq!, dq, `${what}: dQ`);
      });
    });
  });
});

describe('a row with a NaN', () => {
  const [queries, keys, dim] = [67, 67, 2] as const;
  const measured = (row: number | null, head: number) => {
    const random = bellShaped(seed + 1);
    const frame = { batch: 2, heads: 2, kvHeads: 1, queries, keys, dim };
    const drawn = filledProblem(frame, random, {
      prefix: 1,
      window: { left: 2, right: 1 },
      bias: tensor('bf16', [2, 2, 1, keys], random),
      sink: { logits: tensor('fp32', [2], random), inLse: true },
    });
    const values = decodeTensor(drawn.q);
    if (row !== null) values[(head * queries + row) * dim + 1] = NaN;
    const problem = { ...drawn, q: tensor('bf16', drawn.q.shape, (i) => values[i]) };
    const dout = tensor('bf16', [2, 2, queries, dim], random);
    const shared = { dbias: 'fp32', dsink: 'fp32' } as const;
    const premises = anyGradientPremises(problem, 'bf16');
    const { gradients, reference } = measureGradients(problem, dout, { premises, given, shared });
    return { gradients, mask: problemMask(problem, reference.shape) };
  };

  const head = 2;
  const whole = lazily(() => measured(null, head).gradients);

  it.each([62, 65])(
    'leaves row %d, the keys that it sees and what they add to unbounded',
    (row) => {
      const { gradients, mask } = measured(row, head);
      const seen = new Set(keysOf(mask.ranges(head, row)));
      expect(seen.size).toBeGreaterThan(2);
      const isUnknown = {
        dq: (at: number) => Math.floor(at / dim) === head * queries + row,
        // Heads 2 and 3 share the second head of K.
        dk: (at: number) => at >= keys * dim && seen.has(Math.floor(at / dim) - keys),
        dv: (at: number) => at >= keys * dim && seen.has(Math.floor(at / dim) - keys),
        dbias: (at: number) => Math.floor(at / keys) === head && seen.has(at % keys),
        dsink: (at: number) => at === 0,
      };
      for (const name of ['dq', 'dk', 'dv', 'dbias', 'dsink'] as const)
        for (const part of ['total', 'systematic', 'deviation'] as const) {
          const [found, wanted] = [gradients[name]!.bound[part], whole()[name]!.bound[part]];
          expect([...found], `${part} of ${name}`).toEqual(
            Array.from(wanted, (x, at) => (isUnknown[name](at) ? Infinity : x)),
          );
        }
    },
  );
});

describe('equal rows of a head', () => {
  it('are counted once as long as the head is the same, and are its own', () => {
    const random = bellShaped(seed);
    const frame = { heads: 2, kvHeads: 2, queries: 5, keys: 4, dim: 3 };
    const drawn = filledProblem(frame, random);
    const dout = tensor('bf16', [1, 2, 5, 3], random);
    const values = decodeTensor(drawn.q);
    // In the second head, rows 0, 1 and 2 of Q are equal.
    const isEqual = (i: number) => i >= 15 && i < 24;
    const q = tensor('bf16', drawn.q.shape, (i) => values[isEqual(i) ? 15 + (i % 3) : i]);
    const problem = { ...drawn, q };
    const shape = problemShape(problem);
    const arithmetic = pairArithmetic(problem, shape, anyGradientPremises(problem, 'bf16'));
    const { alikeQueries, alikeKeys } = createPairReader(problem, dout, shape, arithmetic);
    const first = alikeQueries(0);
    expect([...first.scores]).toEqual([1, 1, 1, 1, 1]);
    expect(alikeQueries(0)).toBe(first);
    const second = alikeQueries(1);
    expect([...second.scores]).toEqual([3, 3, 3, 1, 1]);
    expect([...second.products]).toEqual([1, 1, 1, 1, 1]);
    expect(second.most).toBe(1);
    expect(alikeQueries(1)).toBe(second);
    expect(alikeKeys(1)).toBe(alikeKeys(1));
    expect(alikeQueries(0)).toEqual(first);
  });
});
