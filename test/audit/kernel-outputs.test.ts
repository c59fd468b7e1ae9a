import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { auditableLse, auditableOutput, rowsOfHead } from '../../src/audit/kernel-outputs.js';
import { quantities, type ProblemShape } from '../../src/problem/index.js';
import { tensor } from '../setup/problems.js';

const [output, logSumExp] = quantities;
const shapeOf = (batch: number, heads: number, queries: number): ProblemShape => ({
  batch,
  heads,
  kvHeads: heads,
  groupSize: 1,
  queries,
  keys: 1,
  qkDim: 1,
  vDim: 2,
});
const size = fc.integer({ min: 1, max: 4 });
const sizes = fc.record({
  batch: size,
  heads: size,
  rows: size,
  padding: fc.constantFrom(0, 1, 3),
});

/** The LSE of a row, told by its place. */
const told = (head: number, row: number) => 100 * head + row;

/** Numbers of rows in a shape whose rows of a head are `stride`, the padding NaN. */
function numbers(shape: readonly number[], rows: number, stride: number) {
  return tensor('fp32', shape, (i) =>
    i % stride < rows ? told(Math.floor(i / stride), i % stride) : NaN,
  );
}

describe('an LSE', () => {
  it('is taken with batch and heads apart, merged or without a batch of one; padded; with a last dimension of one', () => {
    fc.assert(
      fc.property(sizes, ({ batch, heads, rows, padding }) => {
        const stride = rows + padding;
        const of = shapeOf(batch, heads, rows);
        const expected = Array.from({ length: batch * heads * rows }, (_, i) =>
          told(Math.floor(i / rows), i % rows),
        );
        const outer = [[batch, heads], [batch * heads], ...(batch === 1 ? [[1, heads]] : [])];
        for (const before of outer) {
          const plain = [...before, stride];
          // One row of a head that is padded, or one number of a row: only four dimensions, or rows, tell these apart.
          const isTold = before.length === 2 || rows !== 1;
          for (const given of [plain, ...(isTold ? [[...plain, 1]] : [])]) {
            expect(rowsOfHead(logSumExp, given, of)).toBe(stride);
            expect([...auditableLse(numbers(given, rows, stride), of)]).toEqual(expected);
          }
        }
      }),
    );
  });

  it('is refused in any other shape', () => {
    const of = shapeOf(2, 3, 5);
    for (const given of [
      [],
      [30],
      [1],
      [2, 3, 4],
      [2, 3, 4, 1],
      [2, 3, 5, 2],
      [2, 3, 5, 1, 1],
      [3, 2, 5],
      [1, 6, 5],
      [5, 5],
      [5, 5, 1],
      [6, 4],
      [2, 3],
      [2, 15],
      [1, 2, 3, 5],
    ])
      expect(() => rowsOfHead(logSumExp, given, of), String(given)).toThrow(
        `has shape [${given.join(', ')}] but the problem asks for [2, 3, 5]`,
      );
    const one = shapeOf(2, 3, 1);
    expect(rowsOfHead(logSumExp, [2, 3, 1, 1], one)).toBe(1);
    expect(() => rowsOfHead(logSumExp, [2, 3, 1, 2], one)).toThrow('has shape');
  });

  it('is told how to be turned where heads come last', () => {
    const of = shapeOf(2, 3, 5);
    const hint = /turn \[batch, seqlen, heads\]/;
    expect(() => rowsOfHead(logSumExp, [2, 5, 3], of)).toThrow(hint);
    expect(() => rowsOfHead(logSumExp, [5, 3], shapeOf(1, 3, 5))).toThrow(hint);
    expect(() => rowsOfHead(logSumExp, [2, 4, 3], of)).not.toThrow(hint);
  });
});

describe('an output', () => {
  it('has the shape of the problem, without a batch of one or with it', () => {
    fc.assert(
      fc.property(sizes, ({ batch, heads, rows }) => {
        const of = shapeOf(batch, heads, rows);
        const full = [batch, heads, rows, 2];
        for (const given of batch === 1 ? [full, full.slice(1)] : [full]) {
          expect(rowsOfHead(output, given, of)).toBe(rows);
          const values = auditableOutput(
            tensor('fp32', given, (i) => i),
            of,
          );
          expect([...values]).toEqual([...values.keys()]);
        }
        for (const axis of [0, 1, 2, 3]) {
          const other = full.with(axis, full[axis] + 1);
          expect(() => rowsOfHead(output, other, of)).toThrow('has shape');
        }
        expect(() => rowsOfHead(output, [...full, 1], of)).toThrow('has shape');
        if (batch > 1) expect(() => rowsOfHead(output, full.slice(1), of)).toThrow('has shape');
      }),
    );
  });
});
