import { describe, expect, it } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { lazily } from '../../../src/reuse/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { encode } from '../damage.js';
import { normalCase, roundedGradients } from './gradient-case.js';

const frame = { heads: 2, queries: 12, keys: 20, dim: 8, vDim: 8 } as const;

/** Right gradients, and the output and the LSE that a forward pass stored for them. */
const stored = lazily(() => {
  const posed = normalCase(frame, 5);
  const { out, lse } = attentionOracle(posed.problem).quantities;
  const rows = [1, frame.heads, frame.queries];
  return {
    problem: posed.problem,
    given: roundedGradients(posed, posed.exact),
    out: encode(out.values, 'bf16', [...rows, frame.vDim]),
    lse: encode(lse.values, 'fp32', rows),
  };
});

/** A tensor of which element 17 is another number. */
function withElement({ format, shape }: Tensor, values: Float64Array, other: number): Tensor {
  return encode(
    values.map((x, i) => (i === 17 ? other : x)),
    format,
    shape,
  );
}

describe('gradients beside a stored result that is not finite', () => {
  it.each([NaN, Infinity, -Infinity])(
    'are judged where they do not depend on it: dV, with %s in O',
    (x) => {
      const { problem, given, out, lse } = stored();
      const { values } = attentionOracle(problem).quantities.out;
      const { gradients, verdict } = auditGradients(problem, {
        ...given,
        out: withElement(out, values, x),
        lse,
      });
      const dv = gradients.find(({ quantity }) => quantity.name === 'dv')!;
      expect(dv.elements.outside).toBe(0);
      expect(dv.elements.unbounded).toBe(0);
      // Every key is seen by the row, so that nothing is known of dK.
      expect(verdict.sentence).toMatch(/no element of dK has a bound/);
    },
  );

  it.each([NaN, Infinity, -Infinity])('do not pass with %s in the LSE', (x) => {
    const { problem, given, out, lse } = stored();
    const { values } = attentionOracle(problem).quantities.lse;
    const { verdict } = auditGradients(problem, {
      ...given,
      out,
      lse: withElement(lse, values, x),
    });
    expect(verdict.pass).toBe(false);
  });
});
