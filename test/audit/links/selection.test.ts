import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  auditSelection,
  type LinkAudit,
  type SelectionPromises,
} from '../../../src/audit/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import {
  drawInputs,
  kernelScores,
  problemOf,
  select,
  type DrawnSizes,
  type KernelInputs,
  type KernelMistake,
} from './selection-kernel.js';

const sizes: DrawnSizes = {
  batch: 2,
  queries: 6,
  queryHeads: 4,
  keyHeads: 1,
  lists: 1,
  keys: 90,
  dim: 16,
  listed: 12,
  blockSize: 1,
};

const arithmetic = { accumulator: 'fp32', scores: 'fp32', means: 'fp32' } as const;
const noPromises: SelectionPromises = { isSorted: false, ties: 'any' };

function judge(inputs: KernelInputs, indices: Int32Array, promises = noPromises): LinkAudit {
  return auditSelection(
    { problem: problemOf(inputs), results: { indices } },
    { arithmetic, promises, seed: 1 },
  );
}

/** Axes moved by one: the elements of each inner stretch take those of the next, which wrap around. */
function rolled(values: Float32Array, inner: number, size: number, step: number): Float32Array {
  return values.map((_, i) => {
    const at = Math.floor(i / inner) % size;
    return values[i + (((at + step + size) % size) - at) * inner] ?? 0;
  });
}

const ofIndexer = (seed: number) => drawInputs(seed, sizes, 'indexer', true);
const ofHeads = (seed: number) =>
  drawInputs(seed, { ...sizes, keyHeads: 2, lists: 2 }, 'dot', true);
const ofBlocks = (seed: number) =>
  drawInputs(seed, { ...sizes, keys: 301, blockSize: 5, listed: 9 }, 'block-mean', true);

/** Mistakes of a kernel, by the name of the cause that has to be found. */
const mistakes: Readonly<
  Record<string, { readonly of: (seed: number) => KernelInputs; readonly mistake: KernelMistake }>
> = {
  'activation-missing': { of: ofIndexer, mistake: { activate: (x) => x } },
  'activation-absolute': { of: ofIndexer, mistake: { activate: Math.abs } },
  'weights-missing': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, weights: one.weights.map(() => 1) }) },
  },
  'weights-of-next-head': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, weights: rolled(one.weights, 1, 4, 1) }) },
  },
  'weights-of-previous-query': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, weights: rolled(one.weights, 4, 6, -1) }) },
  },
  'last-head-missing': {
    of: ofIndexer,
    mistake: {
      inputs: (one) => ({ ...one, weights: one.weights.map((w, i) => (i % 4 === 3 ? 0 : w)) }),
    },
  },
  'key-scale-missing': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, keyScale: one.keyScale.map(() => 1) }) },
  },
  'key-scale-of-next-key': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, keyScale: rolled(one.keyScale, 1, 90, 1) }) },
  },
  'query-of-previous-row': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, q: rolled(one.q, 64, 6, -1) }) },
  },
  'query-of-next-head': {
    of: ofHeads,
    mistake: { inputs: (one) => ({ ...one, q: rolled(one.q, 16, 4, 1) }) },
  },
  'keys-of-next-entry': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, k: rolled(one.k, 90 * 16, 2, 1) }) },
  },
  'keys-of-next-head': {
    of: ofHeads,
    mistake: { inputs: (one) => ({ ...one, k: rolled(one.k, 16, 2, 1) }) },
  },
  'first-head-alone': {
    of: ofHeads,
    mistake: {
      inputs: (one) => ({ ...one, q: one.q.map((x, i) => (Math.floor(i / 16) % 2 === 0 ? x : 0)) }),
    },
  },
  'smallest-selected': { of: ofIndexer, mistake: { score: (x) => -x } },
  'bounds-of-block': {
    of: ofBlocks,
    mistake: { inputs: (one) => ({ ...one, law: 'block-bounds' }) },
  },
  'limit-late': {
    // So few keys that some row has its newest, or the one behind it, among the largest.
    of: (seed) => drawInputs(seed, { ...sizes, keys: 20 }, 'indexer', true),
    mistake: { inputs: (one) => ({ ...one, end: one.end.map((end) => Math.min(20, end + 1)) }) },
  },
  'limit-early': {
    // So few keys that some row has its newest, or the one behind it, among the largest.
    of: (seed) => drawInputs(seed, { ...sizes, keys: 20 }, 'indexer', true),
    mistake: { inputs: (one) => ({ ...one, end: one.end.map((end) => end - 1) }) },
  },
  'limit-ignored': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, end: one.end.map(() => 90) }) },
  },
  'limit-top-left': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, end: one.end.map((_, row) => (row % 6) + 1) }) },
  },
  'tail-missing-32': {
    of: ofIndexer,
    mistake: { inputs: (one) => ({ ...one, end: one.end.map((end) => end - (end % 32)) }) },
  },
  'first-64-alone': {
    of: (seed) => drawInputs(seed, { ...sizes, keys: 150 }, 'indexer', true),
    mistake: { inputs: (one) => ({ ...one, end: one.end.map((end) => Math.min(end, 64)) }) },
  },
  'index-one-late': {
    of: ofIndexer,
    mistake: { lists: (lists) => lists.map((index) => (index < 0 ? index : index + 1)) },
  },
  'list-of-previous-query': {
    of: ofIndexer,
    mistake: {
      lists: (lists) =>
        lists.map((own, i) => (Math.floor(i / 12) % 6 === 0 ? own : (lists[i - 12] ?? 0))),
    },
  },
  'list-of-next-entry': {
    of: (seed) => ofIndexer(seed),
    mistake: { lists: (lists) => lists.map((_, i) => lists[(i + 72) % 144] ?? 0) },
  },
  'listed-twice': {
    of: (seed) => drawInputs(seed, { ...sizes, keys: 12 }, 'indexer', false),
    mistake: {
      lists: (lists) => lists.map((index, i) => (i % 12 === 11 ? (lists[i - 1] ?? 0) : index)),
    },
  },
  'fewer-selected': {
    of: ofIndexer,
    mistake: { lists: (lists) => lists.map((index, i) => (i % 12 < 8 ? index : -1)) },
  },
};

describe('a selection', () => {
  it.each(['indexer', 'dot', 'block-mean', 'block-bounds'] as const)(
    'of correct kernels passes: %s',
    (law) => {
      fc.assert(
        fc.property(
          fc.record({
            seed: fc.nat(),
            batch: fc.integer({ min: 1, max: 2 }),
            queries: fc.integer({ min: 1, max: 4 }),
            keyHeads: fc.constantFrom(1, 2),
            lists: fc.constantFrom(1, 2),
            keys: fc.integer({ min: 1, max: 60 }),
            dim: fc.constantFrom(1, 8, 16),
            listed: fc.integer({ min: 1, max: 16 }),
            isCausal: fc.boolean(),
          }),
          ({ seed, isCausal, ...drawn }) => {
            const heads = law === 'indexer' ? { keyHeads: 1, lists: 1 } : {};
            const blockSize = law.startsWith('block') ? 4 : 1;
            const inputs = drawInputs(
              seed,
              { ...drawn, ...heads, queryHeads: 4, blockSize },
              law,
              isCausal,
            );
            const { verdict } = judge(inputs, select(inputs), { isSorted: true, ties: 'any' });
            expect(verdict.sentence).toMatch(/^PASS|^NOT JUDGED: no score decides/);
            // Where any list would do, that holds of a reversed choice as well.
            if (verdict.status === 'PASS') return;
            const other = select(inputs, { score: (x) => -x });
            expect(judge(inputs, other).verdict.status).toBe('NOT JUDGED');
          },
        ),
        { seed: testSeed, numRuns: scaled(60) },
      );
    },
  );

  it.each(Object.keys(mistakes))(
    'of a kernel with a mistake fails, and it is named: %s',
    (name) => {
      const { of, mistake } = mistakes[name]!;
      for (let i = 0; i < 3; i++) {
        const inputs = of(testSeed + i);
        const { verdict } = judge(inputs, select(inputs, mistake));
        expect(verdict.status).toBe('FAIL');
        const { id, equivalents } = verdict.diagnosis!;
        expect([id, ...equivalents], verdict.sentence).toContain(name);
      }
    },
  );

  it('is no pass with a single wrong index, which the verdict shows with both scores and its place', () => {
    const inputs = ofIndexer(testSeed);
    const indices = select(inputs);
    const scores = kernelScores(inputs, { entry: 1, query: 3, list: 0 });
    const at = (6 + 3) * 12 + 11;
    const own = new Set(indices.subarray(at - 11, at + 1));
    const least = [...scores.keys()]
      .filter((j) => !own.has(j) && j < (inputs.end[9] ?? 0))
      .reduce((a, b) => ((scores[b] ?? 0) < (scores[a] ?? 0) ? b : a));
    indices[at] = least;
    const { verdict, checks } = judge(inputs, indices);
    expect(checks.find(({ name }) => name === 'largest')).toMatchObject({ wrong: 1, checked: 144 });
    expect(verdict.sentence).toContain(`sequence 1, query 3 lists ${least} with the score`);
    expect(verdict.diagnosis!.id).toBe('unexplained');
  });

  it('may break ties at will, and the verdict says how many; not where an order of ties is promised', () => {
    const scores = Float32Array.from({ length: 20 }, (_, i) => (i < 4 ? 2 : 1));
    const problem = {
      law: 'given',
      shape: { batch: 1, queries: 1, heads: 1, listed: 6, keys: 20, candidates: 20 },
      count: 6,
      first: Int32Array.of(0),
      end: Int32Array.of(20),
      forced: { first: false, last: false },
      reduction: 'sum',
      activation: 'relu',
      blockSize: 1,
      scores: { format: 'fp32', shape: [1, 1, 1, 20], data: scores },
    } as const;
    const indices = Int32Array.of(0, 1, 2, 3, 19, 7);
    const of = (ties: SelectionPromises['ties']) =>
      auditSelection(
        { problem, results: { indices } },
        { arithmetic, promises: { isSorted: false, ties }, seed: 1 },
      );
    expect(of('any').verdict.status).toBe('PASS');
    expect(of('lowest-index').verdict.diagnosis!.id).toBe('ties-at-will');
    expect(of('highest-index').verdict.status).toBe('FAIL');
    // Each of the four largest would do, and no other of the twenty.
    const single = { ...problem, shape: { ...problem.shape, listed: 1 }, count: 1 };
    const ofOne = (index: number) =>
      auditSelection(
        { problem: single, results: { indices: Int32Array.of(index) } },
        { arithmetic, promises: noPromises, seed: 1 },
      ).verdict.status;
    expect([0, 3, 4].map(ofOne)).toEqual(['PASS', 'PASS', 'FAIL']);
  });

  it('is not judged where no score decides: equal ones, infinite ones, scores without a bound', () => {
    const inputs = ofIndexer(testSeed);
    const indices = select(inputs);
    for (const q of [inputs.q.map(() => 0), inputs.q.map(() => Infinity)])
      expect(judge({ ...inputs, q }, indices).verdict.status).toBe('NOT JUDGED');
    // All of them beyond fp16: where some were zero, those would be the smaller ones for certain.
    const vast = {
      ...inputs,
      q: inputs.q.map((x) => (1 + Math.abs(x)) * 2 ** 120),
      k: inputs.k.map((x) => 1 + Math.abs(x)),
      weights: inputs.weights.map((w) => 1 + Math.abs(w)),
    };
    const { verdict } = auditSelection(
      { problem: problemOf(vast), results: { indices: select(inputs) } },
      { arithmetic: { ...arithmetic, scores: 'fp16' }, promises: noPromises, seed: 1 },
    );
    expect(verdict.status).not.toBe('PASS');
  });

  it('is not judged where every score is NaN', () => {
    const inputs = ofIndexer(testSeed);
    const poisoned = { ...inputs, q: inputs.q.map(() => NaN) };
    expect(judge(poisoned, select(inputs)).verdict.status).toBe('NOT JUDGED');
  });
});
