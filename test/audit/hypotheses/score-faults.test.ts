import { describe, expect, it } from 'vitest';
import { headHypotheses } from '../../../src/audit/diagnosis/hypotheses/head-faults.js';
import { scoreHypotheses } from '../../../src/audit/diagnosis/hypotheses/score-faults.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOfFault, expectFamily, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const fill = (seed: number) => {
  const random = pseudorandom(seed);
  return () => 2 * random();
};
const frame = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 5, dim: 3, vDim: 2 };
const plain = (changes: Partial<Problem> = {}, sizes: Partial<typeof frame> = {}) =>
  filledProblem({ ...frame, ...sizes }, fill(11), { scale: 0.75, ...changes });

/** Faults of the score law. */
const ofScore = (law: (dot: number) => number): Fault => ({ score: law });

describe('hypotheses about scores', () => {
  const scales: Readonly<Record<string, number>> = {
    'scale-twice: the scale is applied twice': 0.75 * 0.75,
    'scale-missing: the scale is not applied': 1,
    'scale-by-dimension: the scale is 1/d, not the one of the problem': 1 / 3,
    'scale-by-root-dimension: the scale is the default 1/√d, not the one of the problem':
      1 / Math.sqrt(3),
    "scale-by-value-dimension: the scale is 1/√d of V's dimension, not the one of the problem":
      1 / Math.sqrt(2),
    "scale-sign: the scale's sign is lost": -0.75,
    'log2e-missing: the exponential is to base 2 without log2 e in the scale': 0.75 * Math.log(2),
    'log2e-twice: log2 e is in the scale twice': 0.75 / Math.log(2),
  };

  it('predict what another scale gives', () => {
    expectFamily(
      scoreHypotheses,
      plain(),
      Object.fromEntries(
        Object.entries(scales).map(([name, scale]) => [name, ofScore((dot) => scale * dot)]),
      ),
    );
  });

  it('predict what a wrong softcap gives, and another scale under a right one', () => {
    const cap = 1.5;
    const tanh = (x: number) => cap * Math.tanh(x / cap);
    expectFamily(scoreHypotheses, plain({ softcap: cap, causal: true }), {
      ...Object.fromEntries(
        Object.entries(scales).map(([name, scale]) => [name, ofScore((dot) => tanh(scale * dot))]),
      ),
      'softcap-ignored: the softcap is ignored': ofScore((dot) => 0.75 * dot),
      'softcap-before-scale: the softcap is applied to the unscaled scores': ofScore(
        (dot) => 0.75 * tanh(dot),
      ),
      'softcap-not-multiplied: the tanh of the softcap is not multiplied by the cap': ofScore(
        (dot) => Math.tanh((0.75 * dot) / cap),
      ),
      'softcap-not-divided: the scores are not divided by the softcap before its tanh': ofScore(
        (dot) => cap * Math.tanh(0.75 * dot),
      ),
    });
  });

  it('leave out a scale that is the right one, and that of V where its dimension is no other', () => {
    const ids = (problem: Problem) =>
      [...hypothesesOf(scoreHypotheses, contextOfFault(problem)).values()].map(({ id }) => id);
    expect(ids(plain({ scale: 1 }))).not.toContain('scale-twice');
    expect(ids(plain({ scale: 1 }))).not.toContain('scale-missing');
    expect(ids(plain({}, { vDim: 3 }))).not.toContain('scale-by-value-dimension');
    expect(ids(plain({ scale: 1 / 3 }))).not.toContain('scale-by-dimension');
  });
});

describe('hypotheses about heads', () => {
  const own = ({ batch, kvHead }: At) => ({ batch, kvHead });
  const reading = (
    book: Textbook,
    what: string,
    from: (at: At) => { readonly batch: number; readonly kvHead: number },
  ): Record<string, Fault> => {
    const read = (at: At, isMoved: boolean) => (isMoved ? from(at) : own(at));
    const fault = (k: boolean, v: boolean): Fault => ({
      k: (at, t) => book.k(read(at, k).batch, read(at, k).kvHead, at.key, t),
      v: (at, c) => book.v(read(at, v).batch, read(at, v).kvHead, at.key, c),
    });
    const [id, words] = what.split(': ') as [string, string];
    return {
      [`${id}: K and V are read from ${words}`]: fault(true, true),
      [`${id}: K are read from ${words}`]: fault(true, false),
      [`${id}: V are read from ${words}`]: fault(false, true),
    };
  };

  it.each([
    [2, 2, 4],
    [3, 3, 6],
    [1, 1, 2],
    [1, 3, 3],
    [2, 1, 3],
  ])('predict another head of %i entries and %i kv heads for %i', (batch, kvHeads, heads) => {
    const problem = plain({}, { batch, kvHeads, heads });
    const book = new Textbook(problem);
    const of = (what: string, from: (at: At) => { batch: number; kvHead: number }) =>
      reading(book, what, from);
    const next = (by: number) => (at: At) => ({
      batch: at.batch,
      kvHead: (at.kvHead + by + kvHeads) % kvHeads,
    });
    const nextEntry = (by: number) => (at: At) => ({
      batch: (at.batch + by + batch) % batch,
      kvHead: at.kvHead,
    });
    expectFamily(headHypotheses, problem, {
      ...(heads > kvHeads && kvHeads > 1
        ? of(
            'wrong-kv-head: kv head h mod the number of kv heads instead of ⌊h / group size⌋',
            (at) => ({ batch: at.batch, kvHead: at.head % kvHeads }),
          )
        : {}),
      ...(kvHeads > 2
        ? {
            ...of('neighbouring-kv-head: the next kv head', next(1)),
            ...of('neighbouring-kv-head: the kv head before', next(-1)),
          }
        : {}),
      ...(kvHeads === 2 ? of('neighbouring-kv-head: the other kv head', next(1)) : {}),
      ...(kvHeads > 1
        ? of('first-kv-head: kv head 0 whatever its own head', ({ batch: b }) => ({
            batch: b,
            kvHead: 0,
          }))
        : {}),
      ...(batch > 2
        ? {
            ...of('neighbouring-batch: the next batch entry', nextEntry(1)),
            ...of('neighbouring-batch: the batch entry before', nextEntry(-1)),
          }
        : {}),
      ...(batch === 2 ? of('neighbouring-batch: the other batch entry', nextEntry(1)) : {}),
    });
  });
});
