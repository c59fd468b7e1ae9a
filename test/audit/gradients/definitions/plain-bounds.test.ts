import { describe, expect, it } from 'vitest';
import { attentionOracle, gradientOracle } from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  createGradientBounds,
  type GradientPremises,
} from '../../../../src/audit/gradients/bounds/index.js';
import { tensor } from '../../../setup/problems.js';
import { testSeed } from '../../../setup/effort.js';
import { encode } from '../../damage.js';
import type { Problem } from '../../../../src/problem/index.js';
import { bellShaped } from '../gradient-case.js';
import { filledProblem, type ProblemFrame } from '../../../setup/problems.js';
import { expectBounds, plainBounds } from './plain-bounds.js';

const seed = (testSeed % 1_000_003) + 5;

interface Case {
  readonly frame: ProblemFrame;
  readonly changes?: (random: () => number) => Partial<Problem>;
  readonly premises?: Partial<GradientPremises>;
  readonly isStored?: boolean;
}

const cases: Readonly<Record<string, Case>> = {
  'bf16, two tiles of either side': {
    frame: { batch: 1, heads: 2, kvHeads: 1, queries: 66, keys: 67, dim: 3, vDim: 2 },
    changes: () => ({ window: { left: 6, right: 3 } }),
  },
  'fp32, two tiles of either side': {
    frame: {
      batch: 1,
      heads: 2,
      kvHeads: 1,
      queries: 65,
      keys: 70,
      dim: 18,
      vDim: 2,
      format: 'fp32',
    },
    changes: () => ({ window: { left: 2, right: 14 } }),
    premises: { partials: 'bf16' },
  },
  'heads of batch entries and groups, causal': {
    frame: { batch: 2, heads: 4, kvHeads: 2, queries: 9, keys: 7, dim: 4, vDim: 5 },
    changes: () => ({ causal: true }),
    premises: { delta: 'weights' },
  },
  'fp32 under a softcap, with a bias': {
    frame: { batch: 2, heads: 2, queries: 6, keys: 9, dim: 4, format: 'fp32' },
    changes: (random) => ({ softcap: 1.5, bias: tensor('fp32', [2, 6, 9], random) }),
  },
  'fp16 with dropout': {
    frame: { batch: 1, heads: 2, queries: 6, keys: 9, dim: 4, format: 'fp16' },
    changes: (random) => ({
      dropout: {
        kept: {
          shape: [1, 2, 6, 9],
          data: Uint8Array.from({ length: 108 }, () => (random() < 0.6 ? 1 : 0)),
        },
        probability: 0.25,
      },
    }),
  },
  'of a stored O and LSE': {
    frame: { batch: 2, heads: 4, kvHeads: 2, queries: 6, keys: 9, dim: 4 },
    premises: { delta: 'stored-output' },
    isStored: true,
  },
  'fp32 of a stored O and LSE, equal rows': {
    frame: { batch: 1, heads: 2, kvHeads: 1, queries: 6, keys: 9, dim: 3, format: 'fp32' },
    changes: () => ({
      q: tensor('fp32', [1, 2, 6, 3], (i) => Math.sin(i % 9)),
      v: tensor('fp32', [1, 1, 9, 3], (i) => Math.cos(i % 6)),
    }),
    premises: { delta: 'stored-output' },
    isStored: true,
  },
};

describe('bounds of gradients are those of all pairs one by one', () => {
  it.each(Object.entries(cases))('%s', (name, { frame, changes, premises, isStored }) => {
    const random = bellShaped(seed);
    const problem = filledProblem(frame, random, changes?.(random) ?? {});
    const { format } = problem.q;
    const { batch, heads, queries, vDim = frame.dim } = { batch: 1, heads: 1, ...frame };
    const dout = tensor(format, [batch ?? 1, heads, queries, vDim], random);
    const reference = attentionOracle(problem);
    const { out, lse } = reference.quantities;
    const given =
      isStored === true
        ? {
            out: encode(
              out.values.map((x) => x * 1.01),
              format,
              dout.shape,
            ),
            lse: encode(
              lse.values.map((x) => x + 0.01),
              'fp32',
              dout.shape.slice(0, 3),
            ),
          }
        : { out: null, lse: null };
    const of = {
      problem,
      dout,
      reference,
      given,
      premises: { ...anyGradientPremises(problem, format), ...premises },
    };
    const groups = [...gradientOracle(problem, dout)];
    const boundsOf = createGradientBounds(of);
    const wanted = plainBounds(of, groups);
    groups.forEach((group, i) => {
      const found = boundsOf(group);
      found.heads.forEach(({ head, dq, weightVariance }, member) => {
        const other = wanted[i].heads[member];
        expect(head).toBe(other.head);
        expectBounds(dq!, other.dq, `${name}: dq of head ${head}`);
        weightVariance.forEach((x, row) => {
          expect(x).toBeCloseTo(other.weightVariance[row], 12);
        });
      });
      expectBounds(found.dk!, wanted[i].dk, `${name}: dk of group ${i}`);
      expectBounds(found.dv!, wanted[i].dv, `${name}: dv of group ${i}`);
    });
  });
});
