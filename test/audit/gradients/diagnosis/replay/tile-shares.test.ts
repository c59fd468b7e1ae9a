import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backwardOperands } from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import type { Replayed } from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import {
  tileShare,
  type ScoreTile,
  type TileUse,
} from '../../../../../src/audit/gradients/diagnosis/replay/tile-shares.js';
import { drawFrom } from '../../definitions/random-pairs.js';
import {
  batch,
  caseOf,
  drawns,
  heads,
  kvHeads,
  plainRows,
  qkDim,
  vDim,
  type Drawn,
} from './plain-rows.js';

const names = ['dq', 'dk', 'dv'] as const;

type Name = (typeof names)[number];

/** Some rows of many. */
function drawRange(count: (most: number) => number, most: number) {
  const begin = count(most);
  return { begin, end: begin + 1 + count(most - begin) };
}

/** A tile, what its factors are from, and how far its rows are off, all within the problem. */
function drawUse({ seed, queries, keys }: Drawn, name: Name): { tile: ScoreTile; use: TileUse } {
  const { count, flips } = drawFrom(seed + 1);
  const tile = { queries: drawRange(count, queries), keys: drawRange(count, keys) };
  const [own, most] = name === 'dq' ? [tile.keys, keys] : [tile.queries, queries];
  const rowsOff = flips() ? 0 : count(most - (own.end - own.begin) + 1) - own.begin;
  const isTransposed = flips();
  if (isTransposed)
    return {
      tile,
      use: {
        factors: {
          from: { queries: drawRange(count, queries), keys: drawRange(count, keys) },
          isTransposed,
        },
        rowsOff,
      },
    };
  // As many queries as the tile has.
  const height = tile.queries.end - tile.queries.begin;
  const begin = count(queries - height + 1);
  const from = { queries: { begin, end: begin + height }, keys: drawRange(count, keys) };
  return { tile, use: { factors: { from, isTransposed }, rowsOff } };
}

/** The share of a tile by its definition, pair by pair. */
function plainShare(
  of: Drawn,
  made: ReturnType<typeof caseOf>,
  name: Name,
  { tile, use: { factors, rowsOff } }: ReturnType<typeof drawUse>,
): Float64Array {
  const { queries, keys } = of;
  const { problem, measured, dout } = made;
  const { q, k, dout: dO } = backwardOperands(problem, dout);
  const rowOf = plainRows(of, made);
  const share = new Float64Array(measured.gradients[name].exact.values.length);
  if (factors === null) return share;
  const { from, isTransposed } = factors;
  const dim = name === 'dv' ? vDim : qkDim;
  const operand = { dq: k, dk: q, dv: dO }[name];
  for (let head = 0; head < batch * heads; head++) {
    const rows = Array.from({ length: from.queries.end - from.queries.begin }, (_, i) =>
      rowOf(head, from.queries.begin + i),
    );
    const kvHead = Math.floor(head / (heads / kvHeads));
    for (let query = tile.queries.begin; query < tile.queries.end; query++)
      for (let key = tile.keys.begin; key < tile.keys.end; key++) {
        const own = [query - tile.queries.begin, key - tile.keys.begin];
        const [i, j] = isTransposed ? [own[1], own[0]] : own;
        if (i >= rows.length || from.keys.begin + j >= from.keys.end) continue;
        const pair = rows[i].get(from.keys.begin + j);
        if (pair === undefined) continue;
        const factor = name === 'dv' ? pair.p : problem.scale * pair.dS;
        const ofQuery = head * queries + query;
        const ofKey = kvHead * keys + key;
        const [to, at] = name === 'dq' ? [ofQuery, ofKey] : [ofKey, ofQuery];
        for (let c = 0; c < dim; c++)
          share[to * dim + c] += factor * operand[(at + rowsOff) * dim + c];
      }
  }
  return share;
}

/** How a tile is used; rightly by default. */
const uses = fc.constantFrom('right', 'zeros', 'other', 'other', 'other');

describe('the share of a tile in a gradient', () => {
  it('is the sum over its pairs, of its own factors and rows or of others', () => {
    fc.assert(
      fc.property(drawns, fc.constantFrom(...names), uses, (drawn, name, as) => {
        // A tile is of a pass without a change.
        const of = {
          ...drawn,
          ownSum: false,
          ownDelta: false,
          slopePower: undefined,
          keptIn: 'both',
        } as const;
        const made = caseOf(of);
        const { problem, measured, dout } = made;
        const failed = { problem, measured } as unknown as Replayed['failed'];
        const replayed = { failed, operands: backwardOperands(problem, dout) };
        const { tile, use } = drawUse(of, name);
        const used = {
          right: { factors: { from: tile, isTransposed: false }, rowsOff: 0 },
          other: use,
          zeros: { ...use, factors: null },
        }[as];
        const found = tileShare(replayed, name, tile, as === 'right' ? undefined : used);
        const wanted = plainShare(of, made, name, { tile, use: used });
        expect(found).toHaveLength(wanted.length);
        wanted.forEach((x, i) => {
          expect(Math.abs(found[i] - x) <= 2 ** -40 * (1 + Math.abs(x)), `${name} ${i}`).toBe(true);
        });
      }),
      { numRuns: 60 },
    );
  });
});
