import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locateGradients } from '../../../../src/audit/gradients/locate-gradients.js';
import type { Coordinates } from '../../../../src/audit/kernel-outputs.js';
import type { KeySample } from '../../../../src/audit/rows/index.js';
import type { Problem, ProblemShape } from '../../../../src/problem/index.js';
import { filledProblem, sequencesOf, tensor } from '../../../setup/problems.js';
import { judgementOf, spreadOf, statisticOf } from './made-judgements.js';
import { drawFrom } from './random-pairs.js';

const [heads, kvHeads, of, allKeys] = [4, 2, 12, 10] as const;
const sizes = [
  [5, 3],
  [0, 0],
  [3, 5],
  [4, 2],
] as const;
/** The first query and key of each. */
const starts = [
  [0, 0],
  [5, 3],
  [5, 3],
  [8, 8],
] as const;

const drawns = fc.record({
  seed: fc.nat(1e6),
  isPacked: fc.boolean(),
  hasRows: fc.boolean(),
  hasKeys: fc.boolean(),
  isSample: fc.boolean(),
});

/** Some numbers in ascending order, for each head. */
function selectionOf(seed: number, count: number, ofHead: number, all: number): Int32Array {
  const { count: draw } = drawFrom(seed);
  return Int32Array.from(
    Array.from({ length: count }, () => {
      const left = Array.from({ length: all }, (_, i) => i);
      while (left.length > ofHead) left.splice(draw(left.length), 1);
      return left;
    }).flat(),
  );
}

/** The number of a row within its sequence, and that. */
function within(axis: 0 | 1, name: 'query' | 'key', row: number) {
  const sequence = sizes.findIndex(
    (one, i) => row >= starts[i][axis] && row < starts[i][axis] + one[axis],
  );
  return { [name]: row - starts[sequence][axis], sequence };
}

describe('places of results', () => {
  it('are those of the whole problem, and of elements within their own sequences', () => {
    fc.assert(
      fc.property(drawns, ({ seed, isPacked, hasRows, hasKeys, isSample }) => {
        const draw = drawFrom(seed);
        const batch = isPacked ? 1 : 2;
        const queries = hasRows ? 5 : of;
        const ofHead = hasKeys ? 4 : allKeys;
        const frame = { batch, heads, kvHeads, queries, keys: allKeys, dim: 1 };
        const chosen = selectionOf(seed, batch * heads, queries, of);
        const problem: Problem = filledProblem(frame, () => 1, {
          ...(isPacked && { sequences: sequencesOf(sizes) }),
          ...(hasRows && { rows: { of, queries: chosen } }),
        });
        const shape: ProblemShape = {
          batch,
          heads,
          kvHeads,
          groupSize: 2,
          queries,
          keys: allKeys,
          qkDim: 1,
          vDim: 1,
        };
        const selection = selectionOf(seed + 1, batch * kvHeads, ofHead, allKeys);
        const sample: KeySample | null = hasKeys
          ? {
              seed: 1,
              keys: selection.length,
              of: batch * kvHeads * allKeys,
              edges: 0,
              random: 0,
              selection,
            }
          : null;
        // Keys are a sample where only some are judged.
        const isSampleOfKeys = hasKeys || isSample;
        const column = draw.count(3);
        const query = {
          batch: draw.count(batch),
          head: draw.count(heads),
          query: draw.count(queries),
          column,
        };
        const key = {
          batch: draw.count(batch),
          head: draw.count(kvHeads),
          key: draw.count(ofHead),
          column,
        };
        const made = (name: 'dq' | 'dk' | 'dv', at: Coordinates, sampled: boolean) => {
          const [count, rows] =
            name === 'dq' ? [batch * heads, queries] : [batch * kvHeads, ofHead];
          const head = draw.count(count);
          const some = { head, firstRow: draw.count(rows), lastRow: draw.count(rows) };
          const one = judgementOf(name, {
            heads: name === 'dq' ? heads : kvHeads,
            isSample: sampled,
            elements: {
              worst: { at, value: 1, oracle: 2, error: 3, bound: 4 },
              firstNonFinite: at,
            },
            spread: { worst: { at, error: 5, bound: 6 }, results: [spreadOf(some)] },
            structure: [statisticOf(some)],
          });
          const worst = { at, output: 7, oracle: 8, ulps: 9 };
          return { some, judged: { ...one, error: { ...one.error, worst } } };
        };
        const all = [
          made('dq', query, isSample),
          made('dk', key, isSampleOfKeys),
          made('dv', key, isSampleOfKeys),
        ];
        const found = locateGradients(
          all.map(({ judged }) => judged),
          problem,
          shape,
          sample,
        );

        const queryOf = (head: number, row: number) =>
          hasRows ? chosen[head * queries + row] : row;
        const keyOf = (head: number, row: number) =>
          hasKeys ? selection[head * ofHead + row] : row;
        const ofQuery = queryOf(query.batch * heads + query.head, query.query);
        const ofKey = keyOf(key.batch * kvHeads + key.head, key.key);
        const atQuery = {
          ...query,
          ...(isPacked ? within(0, 'query', ofQuery) : { query: ofQuery }),
        };
        const atKey = { ...key, ...(isPacked ? within(1, 'key', ofKey) : { key: ofKey }) };
        for (const [i, { some, judged }] of all.entries()) {
          const at = i === 0 ? atQuery : atKey;
          const rowOf = (row: number) => (i === 0 ? queryOf : keyOf)(some.head, row);
          const range = {
            ...some,
            firstRow: rowOf(some.firstRow),
            lastRow: rowOf(some.lastRow),
          };
          expect(found[i]).toEqual({
            ...judged,
            error: { ...judged.error, worst: { at, output: 7, oracle: 8, ulps: 9 } },
            elements: {
              ...judged.elements,
              worst: { at, value: 1, oracle: 2, error: 3, bound: 4 },
              firstNonFinite: at,
            },
            spread: {
              ...judged.spread,
              worst: { at, error: 5, bound: 6 },
              results: [spreadOf(range)],
            },
            structure: [statisticOf(range)],
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it('are none where there is no worst element, and of a bias its own', () => {
    const bias = tensor('fp32', [2, 1, 3, 4], () => 0);
    const frame = { batch: 2, heads: 2, queries: 3, keys: 4, dim: 1 };
    const problem = filledProblem(frame, () => 1, { bias });
    const shape = { ...frame, kvHeads: 2, groupSize: 1, qkDim: 1, vDim: 1 };
    expect(locateGradients([judgementOf('dq')], problem, shape)).toEqual([judgementOf('dq')]);
    const at = { batch: 1, head: 0, query: 2, column: 3 };
    const of = judgementOf('dbias', { elements: { firstNonFinite: at } });
    const [found] = locateGradients([of], problem, shape);
    expect(found.elements.firstNonFinite).toEqual({ batch: 1, head: 0, query: 2, key: 3 });
    // Of sinks the head alone.
    const sinks = { ...problem, sink: { logits: tensor('fp32', [2], () => 0), inLse: true } };
    const ofHead = judgementOf('dsink', {
      elements: { firstNonFinite: { batch: 0, head: 1, query: 0 } },
    });
    const [ofSink] = locateGradients([ofHead], sinks, shape);
    expect(ofSink.elements.firstNonFinite).toEqual({ batch: 0, head: 1 });
  });
});
