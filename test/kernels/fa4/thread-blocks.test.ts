import { describe, expect, it } from 'vitest';
import { fa4Model } from '../../../kernels/index.js';
import { shareProblem, unshareProblem } from '../../../src/emulate/share-problem.js';
import { storeProblem, type Problem, type StoredForm } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { normalProblem, seededRandom } from '../features/index.js';

// Of 4.0.0b36 the compiled kernels show it by the columns that software computes: period 10 of pairs, 16 of single thread
// blocks of 128 dimensions; 14 of pairs, none of single ones of 256 (examples/flash-attention-4).
const periodOf = (problem: Problem, splits = '1'): unknown =>
  fa4Model.prepare(problem, new Map([['splits', splits]])).settings['exp2.frequency'];

/** Two sequences of these queries and of 140 and 150 keys, posed in a form. */
function posed(lengths: readonly [number, number], form: StoredForm, dim = 128): Problem {
  const sizes = { batch: 1, heads: 1, kvHeads: 1, dim, vDim: dim };
  const [one, two] = lengths;
  const problem: Problem = {
    ...normalProblem(seededRandom(testSeed), { ...sizes, queries: one + two, keys: 290 }),
    sequences: [
      { firstQuery: 0, queries: one, firstKey: 0, keys: 140 },
      { firstQuery: one, queries: two, firstKey: 140, keys: 150 },
    ],
  };
  return storeProblem(problem, form);
}

/** The same as a caller poses it who gives no lengths of queries. */
function untold(problem: Problem): Problem {
  const given = Object.entries(problem.stored!.tensors!);
  const tensors = Object.fromEntries(given.filter(([name]) => name !== 'seqused_q'));
  return { ...problem, stored: { ...problem.stored!, tensors } };
}
const paged = (pageSize: number): StoredForm['keys'] => ({ kind: 'paged', pageSize });

describe('thread blocks of sequences', () => {
  it('are pairs where queries are padded and all of one length, and pages are of a block', () => {
    const queries = { kind: 'padded' } as const;
    const long = posed([300, 300], { queries, keys: paged(128) });
    expect(periodOf(untold(long))).toBe(10);
    expect(periodOf(long)).toBe(16);
    expect(periodOf(untold(posed([300, 300], { queries, keys: { kind: 'packed' } })))).toBe(10);
    expect(periodOf(untold(posed([300, 300], { queries, keys: paged(64) })))).toBe(16);
    expect(periodOf(untold(posed([256, 256], { queries, keys: paged(128) })))).toBe(16);
    expect(periodOf(posed([300, 290], { queries, keys: paged(128) }))).toBe(16);
    expect(periodOf(posed([300, 300], { queries: { kind: 'packed' }, keys: paged(128) }))).toBe(16);
  });

  it('are pairs of 256 dimensions unless lengths are given, pages are others or keys are split', () => {
    const queries = { kind: 'packed' } as const;
    expect(periodOf(posed([20, 30], { queries, keys: paged(128) }, 256))).toBe(14);
    expect(periodOf(posed([20, 30], { queries, keys: paged(64) }, 256))).toBe(0);
    expect(periodOf(posed([20, 30], { queries, keys: paged(128) }, 256), '2')).toBe(0);
    const padded = { kind: 'padded' } as const;
    expect(periodOf(posed([20, 30], { queries: padded, keys: paged(128) }, 256))).toBe(0);
  });

  it('are the same on every thread of an emulation', () => {
    const problem = untold(posed([300, 300], { queries: { kind: 'padded' }, keys: paged(128) }));
    expect(periodOf(unshareProblem(shareProblem(problem)))).toBe(10);
  });
});
