import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  gradientQuantities,
  measureGradients,
  usualFalseAlarmRate,
} from '../../../../src/audit/index.js';
import type { FailedGradients } from '../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import { explains } from '../../../../src/audit/gradients/diagnosis/prediction.js';
import { backwardOperands } from '../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { replayBudget } from '../../../../src/audit/gradients/diagnosis/replay/budget.js';
import { replayOrder } from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { statisticsFaults } from '../../../../src/audit/gradients/diagnosis/statistics/statistics-faults.js';
import { noMeanErrors } from '../../../../src/audit/gradients/structure/mean-errors.js';
import { placeOfRows } from '../../../../src/audit/rows/index.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { sampled, testSeed } from '../../../setup/effort.js';
import { filledProblem, sequencesOf, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const [batch, heads, queries, qkDim, vDim] = [3, 3, 15, 8, 2] as const;

const frame = { heads, dim: qkDim, vDim };
const random = bellShaped(5);

/** More rows than the largest tile has, of three batch entries. */
const whole = lazily(() => measured(filledProblem({ ...frame, batch, queries, keys: 4 }, random)));

const sizes = [
  [14, 4],
  [6, 3],
  [10, 3],
] as const;
const longest = 14;

const packed = lazily(() =>
  measured(
    filledProblem({ ...frame, queries: 30, keys: 10 }, random, { sequences: sequencesOf(sizes) }),
  ),
);

function measured(problem: Problem) {
  const { batch, queries } = problemShape(problem);
  const dout = tensor('bf16', [batch, heads, queries, vDim], random);
  const premises = anyGradientPremises(problem, 'fp64');
  const forward = { out: null, lse: null };
  const measure = measureGradients(problem, dout, { premises, given: forward });
  return {
    problem,
    dout,
    premises,
    forward,
    measured: measure,
    together: {
      dk: noMeanErrors(batch * heads, qkDim),
      dv: noMeanErrors(batch * heads, vDim),
    },
    falseAlarmRate: usualFalseAlarmRate,
  };
}

type Of = ReturnType<typeof measured>;

/** The LSE and D of a row, natural. */
type Numbers = readonly [lse: number, mean: number];

/** dQ, dK and dV by the textbook, of a backward pass whose rows have other numbers. */
function textbook({ problem, dout }: Of, numbersOf: (row: number) => Numbers) {
  const { batch, queries, keys } = problemShape(problem);
  const [q, k, v, dO] = [problem.q, problem.k, problem.v, dout].map((one) => decodeTensor(one));
  const dq = new Float64Array(q.length);
  const dk = new Float64Array(k.length);
  const dv = new Float64Array(v.length);
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number, dim: number) => {
    let sum = 0;
    for (let c = 0; c < dim; c++) sum += a[i * dim + c] * b[j * dim + c];
    return sum;
  };
  for (let row = 0; row < batch * heads * queries; row++) {
    const [head, query] = [Math.floor(row / queries), row % queries];
    const [lse, mean] = numbersOf(row);
    const sequence = problem.sequences?.find((one) => query < one.firstQuery + one.queries);
    const { firstKey, keys: count } = sequence ?? { firstKey: 0, keys };
    for (let at = firstKey; at < firstKey + count; at++) {
      const key = head * keys + at;
      const p = Math.exp(problem.scale * dot(q, row, k, key, qkDim) - lse);
      const ds = p * (dot(dO, row, v, key, vDim) - mean) * problem.scale;
      for (let c = 0; c < qkDim; c++) {
        dq[row * qkDim + c] += ds * k[key * qkDim + c];
        dk[key * qkDim + c] += ds * q[row * qkDim + c];
      }
      for (let c = 0; c < vDim; c++) dv[key * vDim + c] += p * dO[row * vDim + c];
    }
  }
  return { dq, dk, dv };
}

/** What is said of a backward pass whose rows have other numbers. */
function said(of: Of, numbersOf: (row: number) => Numbers) {
  const values = textbook(of, numbersOf);
  const given = gradientQuantities.map((quantity) => ({
    quantity,
    format: 'fp64' as const,
    values: values[quantity.name],
  }));
  const findings = gradientQuantities.map(({ name }) => ({
    quantity: name,
    test: `${name}-bound` as const,
    isWorstCase: true,
    statement: 'off',
  }));
  const failed: FailedGradients = { ...of, given, findings };
  const replayed = {
    failed,
    operands: backwardOperands(of.problem, of.dout),
    budget: replayBudget(1),
    stored: null,
    scope: null,
    order: replayOrder(failed),
  };
  const all = [...statisticsFaults(replayed)].filter((one) => explains(failed, one));
  return all.map(({ id, sentence, rows, place }) => ({ id, sentence, rows, place }));
}

/** The row whose numbers a row is given, and null for zeros. */
type From = (row: number) => number | null;

function numbersBy({ measured: { reference, mean } }: Of, from: From, isOfLse: boolean) {
  return (row: number): Numbers => {
    const other = from(row);
    const isOne = other !== null && other >= 0 && other < mean.values.length;
    const [lse, delta] = isOne ? [reference.denominator[other], mean.values[other]] : [0, 0];
    return [lse, isOfLse ? mean.values[row] : delta];
  };
}

const rows = batch * heads * queries;
const around = (by: number) => (row: number) => (row + by + rows) % rows;

/** Rules by which rows are given the numbers of others. */
const rules: readonly [words: string, id: string, from: From][] = [
  ['zeros', 'statistics-zero', () => null],
  ['those of the head before', 'statistics-of-others', (row) => row - queries],
  ['those of the next head', 'statistics-of-others', (row) => row + queries],
  ['those of the head before, or of the last', 'statistics-of-others', around(-queries)],
  ['those of the next head, or of the first', 'statistics-of-others', around(queries)],
  ['those of another batch entry', 'statistics-of-others', around(heads * queries)],
  ['those of another batch entry', 'statistics-of-others', around(-heads * queries)],
  ['those of the row before', 'statistics-of-others', around(-1)],
  ['those of the next row', 'statistics-of-others', around(1)],
  ['those of the row before', 'statistics-of-others', (row) => row - 1],
  ['those of the next row', 'statistics-of-others', (row) => row + 1],
  ...[32, 64, 128].flatMap((by): [string, string, From][] => [
    [`those of ${by} rows before`, 'statistics-of-others', (row) => row - by],
    [`those of ${by} rows behind`, 'statistics-of-others', (row) => row + by],
  ]),
];

const cause = 'as where they are read before they are written, or from another place';

/** Every rule, of the LSE alone or of D too. */
const some = rules.map(([words, id, from], i) => {
  const isOfLse = (i + testSeed) % 2 === 0;
  const what = isOfLse ? 'the LSE' : 'the LSE and D';
  const sentence = `the backward pass reads for ${what} ${words}, ${cause}`;
  return [sentence, { id, from, isOfLse }] as const;
});

describe('a backward pass whose rows have the statistics of others', () => {
  it.each(sampled(some, 12))('%s', (sentence, { id, from, isOfLse }) => {
    const of = whole();
    const found = said(of, numbersBy(of, from, isOfLse));
    expect(found).toEqual([{ id, sentence }]);
  });

  it.each([
    ['by sequences', (s: number, h: number, i: number) => (s * heads + h) * longest + i],
    ['by heads', (s: number, h: number, i: number) => h * 30 + ((s * longest + i) % 30)],
  ])('has those of padded sequences, %s', (_, flat) => {
    const of = packed();
    const from = (row: number) => {
      const query = row % 30;
      const [sequence, first] = query < 14 ? [0, 0] : query < 20 ? [1, 14] : [2, 20];
      return flat(sequence, Math.floor(row / 30), query - first);
    };
    expect(said(of, numbersBy(of, from, false))).toEqual([
      {
        id: 'statistics-as-padded',
        sentence: `the backward pass reads for the LSE and D those that lie where padded sequences would have them, ${cause}`,
      },
    ]);
  });

  it('has them in some heads, or in rows by themselves', () => {
    const of = whole();
    const own = numbersBy(of, (row) => row, false);
    const others = numbersBy(of, around(1), false);
    const isOfHead = (row: number) => Math.floor(row / queries) % 4 === 1;
    const [ofHeads] = said(of, (row) => (isOfHead(row) ? others : own)(row));
    expect(ofHeads.id).toBe('statistics-of-others');
    expect([...ofHeads.rows!]).toEqual(
      Array.from({ length: rows }, (_, row) => Number(isOfHead(row))),
    );
    const apart = [3, 30, 31, 101];
    const [ofRows] = said(of, (row) => (apart.includes(row) ? others : own)(row));
    expect(ofRows.id).toBe('statistics-of-others');
    expect(ofRows.rows).toBeUndefined();
    expect(ofRows.place).toEqual(placeOfRows(apart, { ...of.problem, shape: of.measured.shape }));
  });

  it('has them but for a quarter of the rows at most, which have numbers of their own', () => {
    const of = whole();
    const own = numbersBy(of, (row) => row, false);
    const others = numbersBy(of, around(1), false);
    const at = (count: number) => (row: number) => {
      if (row % 8 !== 1) return own(row);
      return row < 8 * count ? ([own(row)[0] + 0.7, own(row)[1] + 0.9] as const) : others(row);
    };
    const off = Array.from({ length: rows }, (_, row) => row).filter((row) => row % 8 === 1);
    expect(off).toHaveLength(17);
    const place = placeOfRows(off, { ...of.problem, shape: of.measured.shape });
    expect(said(of, at(4))).toEqual([
      {
        id: 'statistics-of-others',
        sentence: `the backward pass reads for the LSE and D those of the next row, ${cause}`,
        place,
      },
    ]);
    expect(said(of, at(5))).toEqual([
      {
        id: 'statistics-wrong',
        sentence: `the backward pass has a wrong LSE and a wrong D in 17 rows, ${cause}`,
        place,
      },
    ]);
  });

  it('has numbers by no rule, of the LSE or of both, in few rows or many', () => {
    const of = whole();
    const own = numbersBy(of, (row) => row, false);
    const wrong = (isIn: (row: number) => boolean, ofMean: number) =>
      said(of, (row) => {
        const [lse, mean] = own(row);
        return isIn(row) ? [lse + 0.3 + (row % 7) / 5, mean + ofMean] : [lse, mean];
      }).map(({ id, sentence }) => [id, sentence]);
    const text = 'the backward pass has a wrong LSE';
    expect(wrong((row) => row === 5, 0)).toEqual([['lse-wrong', `${text} in 1 row, ${cause}`]]);
    expect(wrong((row) => row < 67, 2)).toEqual([
      ['statistics-wrong', `${text} and a wrong D in 67 rows, ${cause}`],
    ]);
    expect(wrong((row) => row < 68, 0)).toEqual([
      ['lse-wrong', `${text} in 68 rows, by no rule that is known`],
    ]);
  });
});
