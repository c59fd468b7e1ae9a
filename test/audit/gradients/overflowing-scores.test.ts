import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  auditGradients,
  type GradientDeclaration,
  type GradientTensors,
} from '../../../src/audit/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { lazily } from '../../../src/reuse.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../../setup/problems.js';
import { decode, encode } from '../damage.js';
import { gradientCase, roundedGradients } from './gradient-case.js';

const [heads, queries, keys, dim] = [2, 12, 20, 8];
const large = 3;

/** Query 3 of head 0 has scores beyond 65504, no other query has; with right gradients, and the O and the LSE of a forward pass. */
const posed = lazily(() => {
  const normal = sumNormalNumbers(uniformNumbers(3));
  const problem = filledProblem(
    { heads, queries, keys, dim, format: 'fp16' },
    {
      q: (i) => normal() * (Math.floor(i / dim) === large ? 300 : 0.01),
      k: () => normal() * 100,
      v: normal,
    },
  );
  const right = gradientCase(problem);
  const { out, lse } = attentionOracle(problem).quantities;
  const given = {
    ...roundedGradients(right, right.exact),
    out: encode(out.values, 'fp16', [1, heads, queries, dim]),
    lse: encode(lse.values, 'fp32', [1, heads, queries]),
  };
  return { problem, given };
});

type Given = ReturnType<typeof posed>['given'];

/** A tensor with NaN in `count` elements from one on. */
function withNaN(of: Tensor | null | undefined, first: number, count: number): Tensor {
  const { format, shape } = of!;
  return encode(decode(of!).fill(NaN, first, first + count), format, shape);
}

/** With NaN wherever scores of the large query take it: its rows, and all that they add to. */
function overflowed(): Given {
  const { given } = posed();
  return {
    ...given,
    dq: withNaN(given.dq, large * dim, dim),
    dk: withNaN(given.dk, 0, keys * dim),
    dv: withNaN(given.dv, 0, keys * dim),
    out: withNaN(given.out, large * dim, dim),
    lse: withNaN(given.lse, large, 1),
  };
}

function audit(tensors: GradientTensors, declared: GradientDeclaration) {
  const { verdict, gradients } = auditGradients(posed().problem, tensors, {
    declared,
    diagnose: false,
  });
  const unbounded = gradients.map(({ elements }) => elements.unbounded);
  return { verdict, unbounded, tests: verdict.findings.map(({ test }) => test) };
}

const everywhere = ['dq-non-finite', 'dk-non-finite', 'dv-non-finite'];

describe('gradients of scores that overflow', () => {
  it.each([{ scores: 'fp16' }, { scores: 'input' }])(
    'may be NaN where %j says so, and the others are judged',
    (declared) => {
      const { verdict, unbounded, tests } = audit(overflowed(), declared);
      expect(tests).toEqual([]);
      expect(verdict).toMatchObject({ pass: true, judged: true });
      expect(unbounded).toEqual([dim, keys * dim, keys * dim]);
    },
  );

  it('may be NaN without the forward that had them, by the declaration alone', () => {
    const backward = { ...overflowed(), out: null, lse: null };
    expect(audit(backward, { scores: 'fp16' }).tests).toEqual([]);
    expect(audit(backward, {}).tests).toEqual(everywhere);
  });

  it.each([{}, { dp: 'bf16' }, { scores: 'bf16' }])('may not be by %j', (declared) =>
    expect(audit(overflowed(), declared).tests).toEqual(everywhere),
  );

  it('may not be where no score overflows, whatever the forward stored', () => {
    const declared = { scores: 'fp16' };
    const from = (queries + 1) * dim;
    const dq = (tensors: Given) => ({ ...tensors, dq: withNaN(tensors.dq, from, dim) });
    expect(audit(dq(overflowed()), declared).tests).toEqual(['dq-non-finite']);
    const stored = { ...overflowed(), lse: withNaN(overflowed().lse, queries + 1, 1) };
    expect(audit(dq(stored), declared).tests).toEqual(['dq-non-finite']);
  });
});
