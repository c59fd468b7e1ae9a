import { describe, expect, it } from 'vitest';
import { attentionOracle, forEachWeightTile, type Accuracy } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { FormatName } from '../../../src/formats/index.js';
import { hasKey, problemShape, type Problem } from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { gatheredRow, scatteredMask } from '../../setup/scattered-masks.js';
import { filledProblem, type Settings } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const sizes = { batch: 1, heads: 2, kvHeads: 1, queries: 67, keys: 300, dim: 6, vDim: 5 };

function normalProblem(seed: number, format: FormatName, settings: Settings = {}): Problem {
  return filledProblem({ ...sizes, format }, randomValues(seed).normal, { scale: 1, ...settings });
}

/** The problem with some elements of a tensor replaced. */
function planted(
  problem: Problem,
  name: 'q' | 'k' | 'v',
  places: readonly number[],
  value: number,
) {
  const data = problem[name].data.slice();
  for (const place of places) data[place] = value;
  return { ...problem, [name]: { ...problem[name], data } };
}

/** Asserts that every row under a mask of several ranges is that of its keys, gathered, within the radii. */
function expectGatheredRows(problem: Problem, seed: number, accuracy?: Accuracy) {
  const shape = problemShape(problem);
  const mask = scatteredMask(shape, randomValues(seed));
  const options = accuracy === undefined ? {} : { accuracy };
  const { quantities, maximum } = attentionOracle(problem, { ...options, mask });
  const levels = new Set<number>();
  for (let head = 0; head < shape.batch * shape.heads; head++)
    for (let query = 0; query < shape.queries; query++) {
      const row = head * shape.queries + query;
      const alone = attentionOracle(gatheredRow(problem, shape, mask, head, query), options);
      levels.add(alone.level[0]);
      const near = (found: number, exact: number, radius: number, what: string) => {
        if (Object.is(found, exact)) return;
        expect(
          Math.abs(found - exact),
          `${what} of head ${head}, query ${query}`,
        ).toBeLessThanOrEqual(radius);
      };
      for (let c = 0; c < shape.vDim; c++) {
        const at = row * shape.vDim + c;
        const { out } = quantities;
        const of = alone.quantities.out;
        near(out.values[at], of.values[c], out.radius[at] + of.radius[c], 'O');
        near(out.magnitude[at], of.magnitude[c], 2 ** -40 * of.magnitude[c], 'Σ p|v|');
      }
      const of = alone.quantities.lse;
      near(
        quantities.lse.values[row],
        of.values[0],
        quantities.lse.radius[row] + of.radius[0],
        'the LSE',
      );
      near(
        maximum[row],
        alone.maximum[0],
        2 ** -40 * (1 + Math.abs(alone.maximum[0])),
        'the maximum',
      );
    }
  return levels;
}

describe('a mask of several ranges a row', () => {
  const kinds = [
    ['bf16', {}],
    ['fp32', { softcap: 2 }],
    ['fp32', { scale: -3 }],
    ['fp16', { scale: 0 }],
    ['fp16', { scale: 2 ** 16 }],
  ] as const;
  it.each(sampled(kinds, 2))('is that of the keys gathered: %s, %o', (format, settings) => {
    expectGatheredRows(normalProblem(1, format, settings), 2);
  });

  inTurn('at the slower levels, too', () => {
    const accuracy: Accuracy = { outputFormat: 'fp64', ulpFraction: 2 ** -4, magnitudeFraction: 0 };
    const levels = expectGatheredRows(normalProblem(3, 'fp32'), 4, accuracy);
    expect(levels).not.toContain(1);
  });

  inTurn('and with infinities and NaNs among the keys', () => {
    const problem = normalProblem(5, 'fp32');
    const { dim: qkDim, vDim } = sizes;
    const rows = [0, 63, 64, 65, 130, 299];
    for (const value of sampled([NaN, Infinity, -Infinity], 1)) {
      expectGatheredRows(
        planted(
          problem,
          'v',
          rows.map((row) => row * vDim + 1),
          value,
        ),
        6,
      );
      expectGatheredRows(
        planted(
          problem,
          'k',
          rows.map((row) => row * qkDim + 2),
          value,
        ),
        7,
      );
    }
  });

  inTurn('has weights on the keys of the ranges alone, which sum to one', () => {
    const problem = normalProblem(8, 'fp32');
    const shape = problemShape(problem);
    const mask = scatteredMask(shape, randomValues(9));
    const reference = attentionOracle(problem, { mask });
    const totals = new Float64Array(reference.maximum.length);
    let first = 0;
    let ofHead = 0;
    forEachWeightTile(
      problem,
      reference,
      {
        begin: (head, firstRow) => {
          ofHead = head;
          first = head * shape.queries + firstRow;
        },
        visit: ({ firstRow, rows, firstKey, keys, stride, weights }) => {
          for (let i = 0; i < rows; i++)
            for (let j = 0; j < keys; j++) {
              const weight = weights[i * stride + j];
              const isSeen = hasKey(mask.ranges(ofHead, firstRow + i), firstKey + j);
              expect(weight > 0).toBe(isSeen);
              totals[first + i] += weight;
            }
        },
        end: () => undefined,
      },
      { mask },
    );
    totals.forEach((total, row) => {
      const isEmpty = reference.quantities.lse.values[row] === -Infinity;
      expect(Math.abs(total - (isEmpty ? 0 : 1))).toBeLessThan(2 ** -40);
    });
  });

  it('of one range a row has the very bits of the problem with that mask', () => {
    const problem = normalProblem(10, 'bf16', { causal: true, window: { left: 100, right: -1 } });
    const shape = problemShape(problem);
    const mask = {
      ranges: (_: number, query: number) => {
        const diagonal = query + shape.keys - shape.queries;
        return [{ begin: diagonal - 100, end: diagonal + 1 }];
      },
    };
    const open = { ...problem, causal: false, window: null };
    expect(attentionOracle(open, { mask })).toEqual(attentionOracle(problem));
  });
});
