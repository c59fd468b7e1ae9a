import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { internalBound, KernelBound } from '../../../src/audit/bounds/index.js';
import { problemPremises } from '../../../src/audit/premises/resolve-premises.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { Textbook } from '../hypotheses/textbook.js';

const [batch, heads, kvHeads, queries, keys, qkDim, vDim] = [2, 4, 2, 3, 7, 5, 3];
const problemOf = (changes: Partial<Problem> = {}) => {
  const random = pseudorandom(47);
  const sizes = { batch, heads, kvHeads, queries, keys, dim: qkDim, vDim };
  return filledProblem(sizes, () => 3 * random(), { scale: 0.8, causal: true, ...changes });
};

/** The bound of a row by norms, term by term as the class describes it, in the terms of the problem's premises. */
function plainBound(problem: Problem, row: number) {
  const book = new Textbook(problem);
  const at = book.rowAt(row);
  const premises = problemPremises(problem, 'bf16');
  const {
    elementwise: r,
    usualAccumulation,
    exponential,
    tanh,
    rowSumAddition,
    logarithm,
  } = premises;
  const seen = Array.from({ length: keys }, (_, key) => key).filter((key) =>
    book.sees({ ...at, key }),
  );
  const norm = (of: (t: number) => number) =>
    Math.hypot(...Array.from({ length: qkDim }, (_, t) => of(t)));
  const ofQuery = norm((t) => book.q(at.batch, at.head, at.query, t));
  const ofKey = Math.max(...seen.map((key) => norm((t) => book.k(at.batch, at.kvHead, key, t))));
  const value = Math.max(
    ...seen.flatMap((key) =>
      Array.from({ length: vDim }, (_, c) => Math.abs(book.v(at.batch, at.kvHead, key, c))),
    ),
  );
  const score = Math.abs(problem.scale) * ofQuery * ofKey;
  const capped = problem.softcap === null ? score : Math.min(score, problem.softcap);
  const ofScores =
    Math.expm1(qkDim * usualAccumulation) * score +
    4 * r * score +
    (problem.softcap === null ? 0 : (tanh + 4 * r) * capped);
  const more = 1 + 2 ** -6;
  const n = seen.length;
  const u = 2 ** -8;
  const weight = (Math.expm1(ofScores) + exponential) * more;
  const { lse } = book.row(row);
  return {
    keys: n,
    weight,
    range: 2 * value,
    weightRounding: (u / (1 + u)) * more,
    accumulation: Math.expm1(n * usualAccumulation) * more,
    normalisation: (n * rowSumAddition + 4 * r) * more,
    addition: usualAccumulation,
    typicalWeight:
      weight -
      Math.expm1(qkDim * usualAccumulation) * score +
      Math.sqrt(qkDim) * usualAccumulation * score,
    lse: weight + n * rowSumAddition * more + logarithm + 4 * r * (capped + Math.abs(lse)),
  };
}

describe('the bound of a row by norms', () => {
  it.each([
    [{}],
    [{ softcap: 1.5 }],
    [{ scale: -0.4, causal: false }],
    [{ causal: false, window: { left: 2, right: 1 } }],
  ] as readonly (readonly [Partial<Problem>])[])('is made of its terms: %j', (changes) => {
    const problem = problemOf(changes);
    const bound = new KernelBound(problem, attentionOracle(problem), 'bf16');
    for (let row = 0; row < batch * heads * queries; row++) {
      const found = bound.row(row);
      for (const [name, expected] of Object.entries(plainBound(problem, row))) {
        const own = found[name as keyof typeof found] as number;
        // Norms are rounded up.
        if (!(Math.abs(own - expected) <= 2 ** -30 * expected))
          expect([name, own]).toEqual([name, expected]);
      }
      // A second question has the same answer, whatever was asked before.
      bound.row((row + 5) % 24);
      expect(bound.row(row)).toEqual(found);
    }
  });

  it('of an element is spread by what each error is relative to', () => {
    const row = {
      weight: 3,
      range: 10,
      weightRounding: 0.5,
      accumulation: 0.25,
      normalisation: 0.125,
      floor: 1,
    } as Parameters<typeof internalBound>[0];
    expect(internalBound(row, -8, 16, 2)).toBe(6 + 0.75 * 16 + 1 + 1);
    expect(internalBound(row, 8, 16, 4)).toBe(10 + 0.75 * 16 + 1 + 1);
  });
});
