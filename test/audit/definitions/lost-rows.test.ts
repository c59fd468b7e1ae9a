import { describe, expect, it } from 'vitest';
import {
  explainEmptyRows,
  explainLostRows,
  lostRows,
} from '../../../src/audit/diagnosis/lost-rows.js';
import { lossSignatures } from '../../../src/audit/diagnosis/loss-signatures.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem } from '../../setup/problems.js';
import { bellShaped } from '../gradients/gradient-case.js';
import { contextOf, contextOfFault } from '../hypotheses/context.js';
import { Textbook } from '../hypotheses/textbook.js';

const sizes = { heads: 2, queries: 20, keys: 40, dim: 4, vDim: 3 } as const;
const vDim = sizes.vDim;

function drawn(changes: Partial<Problem> = {}): Problem {
  return { ...filledProblem(sizes, bellShaped(11), {}), ...changes };
}

/** One query and one key of one element, whose product is x. */
function ofProduct(x: number, scale: number): Problem {
  const one = filledProblem(
    { heads: 1, queries: 1, keys: 1, dim: 1, vDim: 1, format: 'fp64' },
    () => 1,
    { scale },
  );
  return { ...one, q: { ...one.q, data: Float64Array.of(x) } as Problem['q'] };
}

/** The signatures of a problem's sound output, by what they say, and the rows that have them. */
function signaturesOf(problem: Problem) {
  const { input, reader } = contextOfFault(problem);
  const rows = [...input.reference.quantities.lse.values.keys()];
  return [...lossSignatures(input, reader)].map((one) => ({
    ...one,
    rows: rows.filter((row) => one.holds(row) === true),
    open: rows.filter((row) => one.holds(row) === null),
  }));
}

/** An output of which some rows are lost, and what is said of them. */
function explained(problem: Problem, lost: ReadonlyMap<number, number>) {
  const { out, lse } = new Textbook(problem).rows({});
  for (const [row, value] of lost) out.fill(value, row * vDim, (row + 1) * vDim);
  const { input, reader } = contextOf(problem, { out, lse }, { isDamaged: (row) => lost.has(row) });
  const rows = [...lost.keys()];
  expect(lostRows(input, rows)).toEqual(rows);
  return explainLostRows(input, reader, rows, rows);
}

const rowsOf = (rows: readonly number[], value: number) =>
  new Map(rows.map((row) => [row, value] as const));

describe('what may cost a kernel whole rows', () => {
  it('is a product, or a scaled score, beyond the range of fp16 or of fp32; open next to it', () => {
    for (const [name, limit] of [
      ['fp16', 65504],
      ['fp32', 2 ** 128],
    ] as const)
      for (const [words, scale, size] of [
        [`q·k overflows ${name} to infinity`, 0.5, 1],
        [`the scaled score overflows ${name} to infinity`, -4, 0.25],
      ] as const)
        for (const [factor, holds] of [
          [1 - 2 ** -9, false],
          [1 - 2 ** -11, null],
          [1 + 2 ** -11, null],
          [1 + 2 ** -9, true],
        ] as const) {
          const problem = ofProduct(Math.sign(scale) * factor * size * limit, scale);
          const found = signaturesOf(problem).find(({ statement }) => statement === words)!;
          expect([found.rows.length, found.open.length], `${words}, ${factor}`).toEqual([
            holds === true ? 1 : 0,
            holds === null ? 1 : 0,
          ]);
          expect(found.alone).toBe(true);
        }
  });

  it('is a tile or a split of which a row sees nothing, and rows that see nothing', () => {
    const problem = drawn({ causal: true, window: { left: 6, right: -1 } });
    // Aligned to the bottom right: query i sees keys i + 14 to i + 20.
    const before = sizes.keys - sizes.queries;
    const isSeen = (row: number, key: number) => {
      const distance = key - before - (row % sizes.queries);
      return distance <= 0 && distance >= -6;
    };
    const all = Array.from({ length: sizes.heads * sizes.queries }, (_, row) => row);
    for (const { id, statement, rows } of signaturesOf(problem)) {
      const size = Number(/(?:tile|split) of (\d+) keys/.exec(statement)?.[1] ?? NaN);
      if (id !== 'masked-tile') continue;
      const masked = all.filter((row) => {
        const sees = (tile: number) =>
          Array.from({ length: size }, (_, i) => tile * size + i).some((key) => isSeen(row, key));
        return !Array.from({ length: Math.ceil(sizes.keys / size) }, (_, tile) => tile).every(sees);
      });
      expect(rows, statement).toEqual(masked);
    }
  });
});

describe('rows that are lost', () => {
  it('are named by what all of them and no others have', () => {
    // The first three queries of each head see nothing.
    const bare = drawn({ window: { left: -1, right: -1 }, causal: true });
    const late = {
      ...bare,
      ...filledProblem({ ...sizes, keys: 17 }, bellShaped(3), {}),
      causal: true,
    };
    const empty = [0, 1, 2, 20, 21, 22];
    const cause = explained(late, rowsOf(empty, NaN))!;
    expect(cause.id).toBe('rows-without-keys');
    expect(cause.sentence).toMatch(/^6 rows are NaN \(queries 0 to 2\): /);
    expect(cause.equivalents).toEqual([]);
    const last = explained(drawn(), rowsOf([19, 39], 0))!;
    expect(last.id).toBe('last-query-not-written');
    expect(last.sentence).toBe('2 rows are zero (query 19): the last query of each head');
    const tail = explained(drawn(), rowsOf([16, 17, 18, 19, 36, 37, 38, 39], Infinity))!;
    expect(tail.sentence).toBe(
      '8 rows are infinite (queries 16 to 19): the last, partial tile of 16 queries',
    );
  });

  it('of zeros without anything in common are rows that are not written, others nothing', () => {
    const zeros = explained(drawn(), rowsOf([3, 25], 0))!;
    expect(zeros.id).toBe('rows-not-written');
    expect(zeros.sentence).toMatch(/^2 rows are zero \(queries 3 and 5\) though there are keys/);
    expect(explained(drawn(), rowsOf([7], 0))!.sentence).toMatch(/^1 row is zero \(query 7\) /);
    const head = Array.from({ length: 20 }, (_, i) => 20 + i);
    expect(explained(drawn(), rowsOf(head, 0))!.sentence).toMatch(
      /^20 rows are zero \(all of head 1\) /,
    );
    expect(explained(drawn(), rowsOf([3, 25], NaN))).toBeNull();
    expect(
      explained(
        drawn(),
        new Map([
          [3, 0],
          [25, NaN],
        ]),
      ),
    ).toBeNull();
  });

  it('are not rows that round to zero, and not rows with one element', () => {
    const tiny = drawn();
    const small = { ...tiny, v: { ...tiny.v, data: tiny.v.data.map(() => 0) } as Problem['v'] };
    const { out, lse } = new Textbook(small).rows({});
    expect(lostRows(contextOf(small, { out, lse }).input, [0, 1])).toEqual([]);
    const sound = new Textbook(tiny).rows({});
    sound.out.fill(0, 0, vDim - 1);
    sound.out[vDim] = NaN;
    expect(lostRows(contextOf(tiny, sound).input, [0, 1, 2])).toEqual([1]);
  });
});

describe('an LSE that fails', () => {
  const empty = { ...filledProblem({ ...sizes, keys: 17 }, bellShaped(3), {}), causal: true };
  const judged = (change: (out: Float64Array, lse: Float64Array) => void) => {
    const { out, lse } = new Textbook(empty).rows({});
    change(out, lse);
    return contextOf(empty, { out, lse }).input;
  };

  it('of rows without keys is named with what stands there, where it is one value', () => {
    const first = explainEmptyRows(
      judged((_, lse) => {
        for (const row of [0, 1, 2, 20, 21, 22]) lse[row] = Infinity;
      }),
    )!;
    expect(first.sentence).toBe('the LSE of rows without keys is +∞ instead of −∞');
    expect(first.place?.queries).toEqual(expect.objectContaining({ ranges: expect.anything() }));
    const some = explainEmptyRows(
      judged((_, lse) => {
        for (const row of [0, 1]) lse[row] = row;
      }),
    );
    expect(some).toBeNull();
    expect(explainEmptyRows(judged((_, lse) => (lse[5] = Infinity)))).toBeNull();
  });
});
