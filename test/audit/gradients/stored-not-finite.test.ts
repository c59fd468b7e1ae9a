import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { auditGradients, type GradientTensors } from '../../../src/audit/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { lazily } from '../../../src/reuse.js';
import { encode } from '../damage.js';
import { normalCase, roundedGradients } from './gradient-case.js';

const frame = { heads: 2, queries: 12, keys: 20, dim: 8, vDim: 8 } as const;
const ofHead = frame.keys * frame.dim;

/** Right gradients, and the O and the LSE that a forward pass stored for them. */
const stored = lazily(() => {
  const posed = normalCase(frame, 5);
  const { out, lse } = attentionOracle(posed.problem).quantities;
  const rows = [1, frame.heads, frame.queries];
  return {
    problem: posed.problem,
    given: {
      ...roundedGradients(posed, posed.exact),
      out: encode(out.values, 'bf16', [...rows, frame.vDim]),
      lse: encode(lse.values, 'fp32', rows),
    },
    values: { out: out.values, lse: lse.values },
  };
});

/** The tensors with another number in one element of head 0, and how many elements of each gradient have no bound then. */
function unboundedWith(name: 'out' | 'lse', other: number): Record<string, number> {
  const { problem, given, values } = stored();
  const { format, shape }: Tensor = given[name];
  const changed = values[name].map((x, i) => (i === 5 ? other : x));
  const tensors: GradientTensors = { ...given, [name]: encode(changed, format, shape) };
  const { gradients } = auditGradients(problem, tensors);
  for (const { elements } of gradients) expect(elements.outside).toBe(0);
  return Object.fromEntries(
    gradients.map(({ quantity, elements }) => [quantity.name, elements.unbounded]),
  );
}

describe('a stored result that is not finite leaves without a bound what depends on it', () => {
  it.each([NaN, Infinity, -Infinity])(
    '%s in O: its row of dQ, dK of its head, nothing of dV',
    (x) => expect(unboundedWith('out', x)).toEqual({ dq: frame.dim, dk: ofHead, dv: 0 }),
  );

  // With ∞ every P of the row is 0, which has a bound.
  it.each([NaN, -Infinity])('%s in the LSE: its row of dQ, dK and dV of its head', (x) =>
    expect(unboundedWith('lse', x)).toEqual({ dq: frame.dim, dk: ofHead, dv: ofHead }),
  );
});
