import { describe, expect, it } from 'vitest';
import type { FailedGradients } from '../../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import { deltaLaws } from '../../../../../src/audit/gradients/diagnosis/statistics/delta-laws.js';
import { problemShape } from '../../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../../setup/problems.js';

const vDim = 2;

interface Frame {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
}

const rowsOf = ({ batch, heads, queries }: Frame) => batch * heads * queries;

/** Gradients that failed, of which each row has another D, dO and O; and what the laws of D make of them. */
function lawsOf(frame: Frame) {
  const problem = filledProblem({ ...frame, keys: 2, dim: 2, vDim }, () => 1);
  const count = rowsOf(frame);
  const means = Float64Array.from({ length: count }, (_, row) => row + 1);
  const dout = tensor('fp64', [count, vDim], (i) => i + 1);
  const out = Float64Array.from({ length: count * vDim }, (_, i) => 3 * i + 2);
  const failed = {
    problem,
    dout,
    forward: { out: null, lse: null },
    measured: {
      shape: problemShape(problem),
      mean: { values: means },
      reference: { quantities: { out: { values: out } } },
    },
  } as unknown as FailedGradients;
  return { laws: [...deltaLaws(failed)], means, out };
}

/** The place of a row. */
interface At {
  readonly entry: number;
  readonly head: number;
  readonly query: number;
}

/** The row whose D, or O, a row has; null for none, where memory holds zeros. */
type From = (at: At) => number | null;

/** The rows that are read, by what is said of them. */
function wantedRows(frame: Frame): ReadonlyMap<string, From[]> {
  const { batch, heads, kvHeads, queries } = frame;
  const count = rowsOf(frame);
  const flat = ({ entry, head, query }: At) => (entry * heads + head) * queries + query;
  const beyond = (row: number) => (row < 0 || row >= count ? null : row);
  const around = (by: number) => (at: At) => (flat(at) + by + count) % count;
  const inHead = (by: number) => (at: At) =>
    at.query + by < 0 || at.query + by >= queries ? flat(at) : flat(at) + by;
  const nextTo = (by: number): From[] => [inHead(by), around(by), (at) => beyond(flat(at) + by)];
  const all = new Map<string, From[]>([
    ['row before', nextTo(-1)],
    ['row behind', nextTo(1)],
  ]);
  for (const by of [32, 64, 128])
    if (by < queries) {
      all.set(`${by} rows before`, [inHead(-by)]);
      all.set(`${by} rows behind`, [inHead(by)]);
    }
  const headBy = (by: number) => (at: At) => flat({ ...at, head: (at.head + by + heads) % heads });
  const group = heads / kvHeads;
  if (heads > 1) {
    all.set('next head', [around(queries), headBy(1)]);
    all.set('head before', [around(-queries), headBy(-1)]);
    all.set('first head', [(at) => flat({ ...at, head: 0 })]);
    if (group > 1 && kvHeads > 1)
      all.set('first head of a group', [
        (at) => flat({ ...at, head: Math.floor(at.head / group) * group }),
      ]);
  }
  const entryBy = (by: number) => (at: At) =>
    flat({ ...at, entry: (at.entry + by + batch) % batch });
  // Of two entries the one before is the next.
  if (batch > 1) {
    all.set('another batch entry', batch === 2 ? [entryBy(1)] : [entryBy(1), entryBy(-1)]);
    all.set('first batch entry', [(at) => flat({ ...at, entry: 0 })]);
  }
  return all;
}

/** All rows, one after the other. */
function placesOf({ batch, heads, queries }: Frame): At[] {
  return Array.from({ length: batch * heads * queries }, (_, row) => ({
    entry: Math.floor(row / (heads * queries)),
    head: Math.floor(row / queries) % heads,
    query: row % queries,
  }));
}

const frames: readonly Frame[] = [
  { batch: 1, heads: 1, kvHeads: 1, queries: 3 },
  { batch: 2, heads: 6, kvHeads: 2, queries: 2 },
  { batch: 3, heads: 2, kvHeads: 1, queries: 3 },
  { batch: 4, heads: 1, kvHeads: 1, queries: 2 },
  { batch: 1, heads: 2, kvHeads: 2, queries: 129 },
];

const words = ({ batch, heads, kvHeads, queries }: Frame) =>
  `${batch} entries of ${heads} heads, ${kvHeads} of K, of ${queries} rows`;
const cases = frames.map((frame) => [words(frame), frame] as const);

describe('a D of other rows', () => {
  it.each(cases)('is that of the rows that are named: %s', (_, frame) => {
    const { laws, means } = lawsOf(frame);
    const places = placesOf(frame);
    const wanted = [...wantedRows(frame)].map(
      ([name, ways]) =>
        [
          `is that of ${/^\d|another/.test(name) ? '' : 'the '}${name}`,
          ways.map((from) => places.map((at) => means[from(at) ?? -1] ?? 0)),
        ] as const,
    );
    const found = new Map<string, number[][]>();
    for (const { words, deltas } of laws.filter((one) => one.words.startsWith('is that of ')))
      found.set(words, [...(found.get(words) ?? []), [...deltas]]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  });

  it('leaves rows of the first or last tile alone, and says which it touches', () => {
    const frame = { batch: 1, heads: 2, kvHeads: 2, queries: 40 };
    const touched = lawsOf(frame).laws.filter(({ rows }) => rows !== undefined);
    const flags = (isTouched: (query: number) => boolean) =>
      placesOf(frame).map(({ query }) => Number(isTouched(query)));
    expect(touched.map(({ words, rows }) => [words, [...rows!]])).toEqual([
      ['is that of 32 rows before', flags((query) => query >= 32)],
      ['is that of 32 rows behind', flags((query) => query < 8)],
    ]);
  });
});

describe('a D of the O of other rows', () => {
  it.each(cases)('is the sum of its products with their O: %s', (_, frame) => {
    const { laws, out } = lawsOf(frame);
    const rows = rowsOf(frame);
    const sumsOf = (from: (row: number) => number) =>
      Array.from({ length: rows }, (__, row) => {
        const at = from(row);
        let sum = 0;
        for (let c = 0; c < vDim; c++) sum += (row * vDim + c + 1) * out[at * vDim + c];
        return sum;
      });
    for (const [name, by] of [
      ['the head before', -frame.queries],
      ['the next head', frame.queries],
      ['the row before', -1],
      ['the next row', 1],
    ] as const) {
      const found = laws.filter((one) => one.words === `is made of the O of ${name}`);
      // Rows that have no other keep their own, or have it from the other end.
      const isThere = (row: number) => row + by >= 0 && row + by < rows;
      expect(found.map(({ deltas }) => [...deltas])).toEqual([
        sumsOf((row) => (isThere(row) ? row + by : row)),
        sumsOf((row) => (row + by + rows) % rows),
      ]);
    }
  });
});
