import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  fa4Arithmetic,
  forEachRowsBound,
  KernelBound,
  type KernelArithmetic,
} from '../../../src/audit/index.js';
import { combinations } from '../../../src/audit/bounds/index.js';
import { normalProblem } from '../../../src/bench/normal-problem.js';
import type { FormatName } from '../../../src/formats/index.js';
import { problemMask, problemShape, type Mask, type Problem } from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { gatheredRow, scatteredMask } from '../../setup/scattered-masks.js';

const inTurn = turns(import.meta.url);

const sizes = { heads: 2, seqlen: 200, dim: 8 };

function problemOf(format: FormatName, settings: Partial<Problem> = {}): Problem {
  return { ...normalProblem(format, sizes), ...settings };
}

type Kind = 'any kernel' | 'fa4';

function arithmeticOf(kind: Kind, problem: Problem): KernelArithmetic {
  return kind === 'fa4' ? fa4Arithmetic(problem) : anyKernelArithmetic(problem, 'bf16');
}

/** Every row's bounds of O and of the LSE, by row, technique and combination. */
function boundsOf(kind: Kind, problem: Problem, mask?: Mask) {
  const options = mask === undefined ? {} : { mask };
  const reference = attentionOracle(problem, { accuracy: auditAccuracy('bf16'), ...options });
  const { vDim } = reference.shape;
  const rows: { readonly name: string; readonly values: readonly number[] }[][] = [];
  forEachRowsBound(
    problem,
    reference,
    arithmeticOf(kind, problem),
    ({ firstRow, rows: count, quantities: { out, lse } }) => {
      for (let i = 0; i < count; i++)
        rows[firstRow + i] = [
          ...combinations.map((name) => ({ name, values: [lse[name][i]] })),
          ...combinations.map((name) => ({
            name: `O ${name}`,
            values: [...out[name].subarray(i * vDim, (i + 1) * vDim)],
          })),
          ...Object.entries(lse.techniques).map(([name, values]) => ({
            name: `LSE ${name}`,
            values: [values[i]],
          })),
          ...Object.entries(out.techniques).map(([name, values]) => ({
            name,
            values: [...values.subarray(i * vDim, (i + 1) * vDim)],
          })),
        ];
    },
    options,
  );
  return { reference, rows };
}

/**
 * Asserts that every bound of some rows under a mask is that of their keys, gathered, but for the additions of
 * the row sum, which count by tiles of keys whether a row sees all of a tile or not.
 */
function expectGatheredBounds(kind: Kind, problem: Problem, mask: Mask, step: number) {
  const shape = problemShape(problem);
  const { rows } = boundsOf(kind, problem, mask);
  for (let head = 0; head < shape.heads; head++)
    for (let query = head; query < shape.queries; query += step) {
      const gathered = gatheredRow(problem, shape, mask, head, query);
      const alone = boundsOf(kind, gathered).rows[0];
      const ofRow = rows[head * shape.queries + query];
      const rowSum = (name: string) => {
        const k = ofRow.findIndex((bound) => bound.name === name);
        return ofRow[k].values.map((value, c) => Math.abs(value - alone[k].values[c]));
      };
      const ofSums = { lse: rowSum('LSE row-sum'), out: rowSum('row-sum') };
      ofRow.forEach(({ name, values }, k) => {
        if (name.endsWith('row-sum')) return;
        values.forEach((value, c) => {
          const wanted = alone[k].values[c];
          if (Object.is(value, wanted)) return;
          const free = values.length > 1 ? ofSums.out[c] : ofSums.lse[0];
          const what = `${name} of head ${head}, query ${query}, column ${c}`;
          const allowed = 0.01 * Math.abs(wanted) + 1.1 * free + 1e-30;
          expect(Math.abs(value - wanted), what).toBeLessThanOrEqual(allowed);
        });
      });
    }
}

describe('bounds under a mask of several ranges a row', () => {
  const kinds = [
    ['bf16', {}],
    ['fp16', { softcap: 3 }],
    ['bf16', { scale: -1 }],
    ['bf16', { scale: 0 }],
    ['bf16', { scale: 3000 }],
  ] as const;
  inTurn.each(sampled(kinds, 2))(
    'of any kernel are those of the keys gathered: %s, %o',
    (format, settings) => {
      const problem = problemOf(format, settings);
      const mask = scatteredMask(problemShape(problem), randomValues(11));
      expectGatheredBounds('any kernel', problem, mask, 13);
    },
  );

  inTurn('of FlashAttention-4 are those of the blocks of keys gathered', () => {
    const problem = { ...normalProblem('bf16', { ...sizes, seqlen: 512 }) };
    const ranges = [0b0101, 0b1001, 0b1011, 0b1101, 0b1010].map((blocks) =>
      [0, 1, 2, 3]
        .filter((block) => (blocks >> block) & 1)
        .map((block) => ({ begin: 128 * block, end: 128 * (block + 1) })),
    );
    const mask = { ranges: (_: number, query: number) => ranges[query % ranges.length] };
    expectGatheredBounds('fa4', problem, mask, 37);
  });

  it.each(['any kernel', 'fa4'] as const)(
    'of one range a row are the very bounds of the problem with that mask: %s',
    (kind) => {
      const problem = problemOf('bf16', { causal: true, window: { left: 100, right: -1 } });
      const mask = problemMask(problem);
      const open = { ...problem, causal: false, window: null };
      expect(boundsOf(kind, open, mask)).toEqual(boundsOf(kind, problem));
    },
  );

  it('from norms count the keys of the ranges', () => {
    const problem = problemOf('bf16');
    const shape = problemShape(problem);
    const mask = scatteredMask(shape, randomValues(13));
    const reference = attentionOracle(problem, { mask });
    const bound = new KernelBound(problem, reference, 'bf16', undefined, { mask });
    for (let row = 0; row < shape.heads * shape.queries; row++) {
      const keys = mask
        .ranges(Math.floor(row / shape.queries), row % shape.queries)
        .reduce((count, { begin, end }) => count + end - begin, 0);
      expect(bound.row(row).keys).toBe(keys);
    }
  });
});
