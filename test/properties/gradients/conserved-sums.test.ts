import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';
import { definedAttention } from '../../kernels/features/index.js';
import type { Asked } from './defined-backward.js';
import { drawnCase, upTo } from './drawn-case.js';
import { tryByHand, type KnownRun } from './law-by-hand.js';

const law = 'gradients-conserved';
const sum = (terms: readonly number[]) => terms.reduce((a, b) => a + b, 0);

/** An element of a gradient that a sum has, and its factor there. */
interface Term {
  readonly name: 'dq' | 'dk' | 'dv';
  readonly at: number;
  readonly factor: number;
}

/** A sum of gradients, its name, and what it is: a number, or a sum of other gradients. */
interface Conserved {
  readonly words: string;
  readonly terms: readonly Term[];
  readonly equals: string;
  readonly others: readonly Term[];
  readonly wanted: number;
}

/** The sums of a form, of every kv head and column, by their definitions. */
function sumsOf({ problem, dout }: Asked, form: number): Conserved[] {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
  const [q, k, given] = [problem.q, problem.k, dout].map((of) => decodeTensor(of));
  const { visible } = definedAttention(problem);
  const kvHeadOf = (row: number) => {
    const head = Math.floor(row / queries);
    return Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  };
  const rows = upTo(batch * heads * queries);
  return upTo(batch * kvHeads).flatMap((kvHead): Conserved[] => {
    const ofKeys = upTo(keys, kvHead * keys);
    const own = rows.filter((row) => kvHeadOf(row) === kvHead);
    const name = `of kv head ${kvHead}`;
    const column = (of: 'dk' | 'dv', dim: number, c: number) =>
      ofKeys.map((key): Term => ({ name: of, at: key * dim + c, factor: 1 }));
    if (form === 0)
      return upTo(vDim).map((c) => ({
        words: `Σ dV over the keys of column ${c} ${name}`,
        terms: column('dv', vDim, c),
        equals: 'Σ dO is ',
        others: [],
        wanted: sum(
          own.filter((row) => visible[row].length > 0).map((row) => given[row * vDim + c]),
        ),
      }));
    if (form === 1)
      return upTo(qkDim).map((c) => ({
        words: `Σ dK over the keys of column ${c} ${name}`,
        terms: column('dk', qkDim, c),
        equals: 'it is 0;',
        others: [],
        wanted: 0,
      }));
    const pair = (of: 'dq' | 'dk', values: Float64Array, all: readonly number[]) =>
      all.flatMap((row) =>
        upTo(qkDim, row * qkDim).map((at): Term => ({ name: of, at, factor: values[at] })),
      );
    return [
      {
        words: `⟨K, dK⟩ ${name}`,
        terms: pair('dk', k, ofKeys),
        equals: '⟨Q, dQ⟩ is ',
        others: pair('dq', q, own),
        wanted: 0,
      },
    ];
  });
}

/** What terms may be off by together. */
const errorOf = (terms: readonly Term[], { bounds }: KnownRun) =>
  sum(terms.map(({ name, at, factor }) => bounds[name][at] * Math.abs(factor)));

describe('sums of gradients', () => {
  it('are conserved in every kv head and column, to what their terms may be off by together', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(drawnCase({ masked: true }), drawnCase({ packed: true, masked: true })),
        fc.nat({ max: 2 }),
        fc.nat(),
        fc.nat(),
        fc.constantFrom(-1, 1),
        async (asked, choice, which, place, sign) => {
          const sums = sumsOf(asked, choice);
          const { words, terms, equals, others } = sums[which % sums.length];
          const all = [...terms, ...others].filter(({ factor }) => factor !== 0);
          const { name, at, factor } = all[place % all.length];
          const tried = async (multiple: number, isKnown = true) => {
            const { statement, inapplicable, runs } = await tryByHand(law, asked, {
              choice,
              change: (run) => {
                const limit = errorOf(terms, run) + errorOf(others, run);
                run.values[name][at] += (sign * multiple * limit) / Math.abs(factor);
                if (!isKnown) run.bounds[name][at] = Infinity;
              },
            });
            expect(runs).toHaveLength(1);
            expect(inapplicable).toBe(!isKnown && sums.length === 1);
            return statement;
          };
          expect(await tried(0.99)).toBeNull();
          const statement = (await tried(1.01)) ?? 'it holds';
          expect(statement.startsWith(`${words} is `), statement).toBe(true);
          expect(statement).toContain(` where ${equals}`);
          // Nothing is known of one term, and so of the sum.
          expect(await tried(1e3, false)).toBeNull();
        },
      ),
      { numRuns: 40 },
    );
  });

  it('are what they equal, in words', async () => {
    await fc.assert(
      fc.asyncProperty(drawnCase({ masked: true }), async (asked) => {
        const [{ terms, wanted }] = sumsOf(asked, 0);
        let found = 0;
        const { statement } = await tryByHand(law, asked, {
          choice: 0,
          change: ({ values }) => {
            values.dv[terms[0].at] += 7;
            found = sum(terms.map(({ at }) => values.dv[at]));
          },
        });
        const numbers = /^[^;]* is (\S+) where Σ dO is (\S+);/.exec(
          (statement ?? '').replaceAll('−', '-'),
        );
        const read = (text = '') => Number(text.replace(/\D*$/, ''));
        // A number of words has three digits.
        const near = (exact: number) => 0.01 * Math.max(1, Math.abs(exact));
        expect(Math.abs(read(numbers?.[1]) - found)).toBeLessThan(near(found));
        expect(Math.abs(read(numbers?.[2]) - wanted)).toBeLessThan(near(wanted));
      }),
      { numRuns: 10 },
    );
  });

  it('are not conserved with dropout or a sink, and of scores not with a softcap', async () => {
    const [{ problem, dout }] = fc.sample(drawnCase({}), 1);
    const { heads } = problemShape(problem);
    const sink = { logits: tensor('fp32', [heads], () => 0), inLse: true };
    const statusOf = (changes: Partial<Problem>) =>
      Promise.all(
        upTo(3).map(async (choice) => {
          const posed = { problem: { ...problem, ...changes }, dout };
          return (await tryByHand(law, posed, { choice })).inapplicable;
        }),
      );
    expect(await statusOf({})).toEqual([false, false, false]);
    expect(await statusOf({ sink })).toEqual([true, true, false]);
    expect(await statusOf({ softcap: 5 })).toEqual([false, true, false]);
  });
});
