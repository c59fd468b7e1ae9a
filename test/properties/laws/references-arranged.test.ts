import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttentionReference } from '../../../oracles/index.js';
import { laws, type LawId } from '../../../properties/index.js';
import { exactAttention } from '../../../properties/laws/within-bound.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { upTo } from '../gradients/drawn-case.js';
import { drawnProblem, tryByHand, type DrawnProblemKinds } from './law-by-hand.js';

/** Laws that judge a problem by the exact attention of another, and problems that they say something of. */
const laid: readonly (readonly [law: LawId, kinds: DrawnProblemKinds])[] = [
  ['query-order', { pairs: true }],
  ['decode-equals-prefill', { masked: true }],
  ['heads-independent', { masked: true, pairs: true }],
  ['grouped-heads', { masked: true, pairs: true }],
  ['padding', { masked: true }],
  ['causal-is-window', { masked: true }],
  ['empty-rows', { masked: true, pairs: true }],
  ['mask-tensors', { masked: true }],
  ['neutral-features', { masked: true }],
  ['sequences-alone', { masked: true }],
  ['sequences-alone', { masked: true, packed: true }],
  ['key-permutation', { pairs: true }],
  ['repeated-keys', { pairs: true }],
  ['score-shift', { masked: true }],
];

const features = ['mask', 'packed', 'bias', 'sink', 'segments', 'prefix', 'block-mask'] as const;

/** Numbers that may be infinite, each within a limit of another. */
function expectNear(found: Float64Array, wanted: Float64Array, limit: (at: number) => number) {
  expect(found).toHaveLength(wanted.length);
  wanted.forEach((x, at) => {
    if (Number.isFinite(x)) expect(Math.abs(found[at] - x)).toBeLessThanOrEqual(limit(at));
    else expect(found[at]).toBe(x);
  });
}

/** That a reference is one of a problem: its values within their radii, which are about as small as those of its own. */
function expectReferenceOf(reference: AttentionReference, problem: Problem) {
  const own = exactAttention(problem);
  expect(reference.shape).toEqual(problemShape(problem));
  for (const name of ['out', 'lse'] as const) {
    const [found, wanted] = [reference.quantities[name], own.quantities[name]];
    const usual = (at: number) => 2 ** -40 * (1 + Math.abs(wanted.values[at]));
    expectNear(found.values, wanted.values, (at) => found.radius[at] + wanted.radius[at]);
    expectNear(found.radius, wanted.radius, usual);
  }
  expectNear(reference.quantities.out.magnitude, own.quantities.out.magnitude, () => 2 ** -30);
  // Of large scores, shifted.
  const size = (x: number) => 2 ** -40 * (1 + Math.abs(x));
  expectNear(reference.maximum, own.maximum, (at) => size(own.maximum[at]));
  expectNear(reference.denominator, own.denominator, (at) => size(own.denominator[at]));
  expect(reference.level).toHaveLength(own.level.length);
}

describe.each(laid)('%s, %o', (law, kinds) => {
  const forms = upTo(laws[law].choices);

  it('judges what it made of a problem by exact attention of that', async () => {
    await fc.assert(
      fc.asyncProperty(drawnProblem(kinds), fc.constantFrom(...forms), async (given, choice) => {
        let asked = 0;
        const finding = 'something is wrong';
        const { statement, inapplicable } = await tryByHand(law, given, {
          choice,
          strength: 'bound',
          promises: { features },
          judge: ({ problem }, reference) => {
            asked++;
            expectReferenceOf(reference!, problem);
            return finding;
          },
        });
        expect(asked).toBeLessThanOrEqual(1);
        if (inapplicable) expect(asked).toBe(0);
        // Of problems with nothing but empty rows there is nothing to compare.
        fc.pre(asked > 0);
        expect(statement).toMatch(new RegExp(`^(with|without|of|as) .*, ${finding}$`));
        const passed = await tryByHand(law, given, {
          choice,
          strength: 'bound',
          promises: { features },
        });
        expect(passed.statement).toBeNull();
      }),
      { numRuns: 4 },
    );
  });
});
