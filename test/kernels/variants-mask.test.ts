import { describe, expect, it } from 'vitest';
import type { Problem, Window } from '../../src/problem/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runFa4, runVariant, scoredProblem, wavyProblem } from './variants-problems.js';

const inTurn = turns(import.meta.url);

/** Where all scores are 0, exp of the LSE is the number of keys that a query sees. */
function seenKeys(problem: Problem, variant: string): number[] {
  return runVariant(variant, problem).lse.map((lse) => Math.round(Math.exp(lse)));
}

describe('missing-tail-mask', () => {
  it('counts zeros up to the end of the block in the row sum, not in the output', () => {
    const problem = scoredProblem({ queries: 2, keys: 100, query: (i) => i, key: () => -1 });
    const { out, lse } = runVariant('missing-tail-mask', problem);
    [0, -1].forEach((score, row) => {
      const [seen, beyond] = [100 * 2 ** score, 28];
      expect(lse[row]).toBeCloseTo(Math.log(seen + beyond), 5);
      expect(out[row * 8]).toBeCloseTo(seen / (seen + beyond), 2);
    });
    expect([...runFa4(problem).out].every((x) => x === 1)).toBe(true);
  });

  it.each([
    ['the keys fill their blocks', wavyProblem([1, 1, 5, 256])],
    ['a causal mask hides the rest', wavyProblem([1, 1, 100, 100], { causal: true })],
  ])('is not seen where %s', (_, problem) => {
    expect(runVariant('missing-tail-mask', problem).bits).toEqual(runFa4(problem).bits);
  });
});

describe('a limit that is off by one', () => {
  interface Case {
    readonly causal: boolean;
    readonly window: Window | null;
  }
  const shifts = {
    'causal-one-more': { causal: 1 },
    'causal-one-less': { causal: -1 },
    'window-left-one-more': { left: 1 },
    'window-left-one-less': { left: -1 },
    'window-right-one-more': { right: 1 },
    'window-right-one-less': { right: -1 },
  } as const;
  const cases: readonly Case[] = [
    { causal: true, window: null },
    { causal: false, window: { left: 3, right: 5 } },
    { causal: true, window: { left: 20, right: -1 } },
    { causal: false, window: { left: -1, right: 2 } },
  ];
  const [queries, keys] = [140, 150];

  /** Key by key, what each query sees under shifted limits. */
  function expectedKeys(
    { causal, window }: Case,
    shift: { causal?: number; left?: number; right?: number },
  ): number[] {
    return Array.from({ length: queries }, (_, row) => {
      const diagonal = row + keys - queries;
      let count = 0;
      for (let key = 0; key < keys; key++) {
        const hidden =
          (causal && key > diagonal + (shift.causal ?? 0)) ||
          (window !== null &&
            window.right >= 0 &&
            key > diagonal + window.right + (shift.right ?? 0)) ||
          (window !== null && window.left >= 0 && key < diagonal - window.left - (shift.left ?? 0));
        if (!hidden) count++;
      }
      return count;
    });
  }

  const shifted = cases.flatMap((masks) =>
    Object.entries(shifts).map(([id, shift]) => ({ id, masks, shift })),
  );
  /** What every query sees without a shift. */
  const right = (masks: Case) => expectedKeys(masks, {});
  const isVisible = ({ masks, shift }: (typeof shifted)[number]) =>
    String(expectedKeys(masks, shift)) !== String(right(masks));

  // TEST_SEED draws some of those that change what is seen, and some of the others.
  inTurn.each(sampled(shifted.filter(isVisible), 5))(
    'lets every query see what the shifted limit says: $id of $masks',
    ({ id, masks, shift }) => {
      const problem = scoredProblem({ queries, keys, vDim: 1 }, masks);
      expect(seenKeys(problem, id)).toEqual(expectedKeys(masks, shift));
    },
  );

  inTurn.each(
    sampled(
      shifted.filter((one) => !isVisible(one)),
      2,
    ),
  )('changes no bit where that limit hides nothing: $id of $masks', ({ id, masks }) => {
    const problem = scoredProblem({ queries, keys, vDim: 1 }, masks);
    expect(seenKeys(problem, id)).toEqual(right(masks));
    expect(runVariant(id, problem).bits).toEqual(runFa4(problem).bits);
  });
});

describe('lse-plus-inf', () => {
  it('is +∞ for queries without keys, and nothing else changes', () => {
    const problem = wavyProblem([1, 1, 40, 30], { causal: true });
    const [kernel, variant] = [runFa4(problem), runVariant('lse-plus-inf', problem)];
    expect(variant.bits.out).toEqual(kernel.bits.out);
    kernel.lse.forEach((lse, row) => {
      expect(lse === -Infinity).toBe(row < 10);
      expect(variant.lse[row]).toBe(row < 10 ? Infinity : lse);
    });
  });
});
