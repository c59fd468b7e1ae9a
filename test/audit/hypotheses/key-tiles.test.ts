import { describe, expect, it } from 'vitest';
import { keyTileHypotheses } from '../../../src/audit/diagnosis/hypotheses/tiles/key-tile-faults.js';
import type { Hypothesis } from '../../../src/audit/diagnosis/hypothesis.js';
import { GranuleSums } from '../../../src/audit/diagnosis/hypotheses/tiles/granule-sums.js';
import { createRowShares } from '../../../src/audit/diagnosis/row-shares.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const random = pseudorandom(7);
const [keys, queries] = [40, 24] as const;
const problem = filledProblem({ heads: 1, queries, keys, dim: 2 }, () => 2 * random(), {
  causal: true,
});
const book = new Textbook(problem);

/** A fault in the tile of keys 16 to 31. */
const inside = ({ key }: At) => key >= 16 && key < 32;
const where = 'keys 16 to 31';
const times = (factor: number) => (at: At) => (inside(at) ? factor : 1);
const own = (dot: number) => book.score(dot);
const zero = (dot: number, at: At) => (inside(at) ? 0 : own(dot));
/** K or V of a tile read from one beside it. */
const from = (by: number) => ({
  k: (at: At, t: number) => book.k(at.batch, at.kvHead, inside(at) ? at.key + by : at.key, t),
  v: (at: At, c: number) => book.v(at.batch, at.kvHead, inside(at) ? at.key + by : at.key, c),
});
const faults: Readonly<Record<string, Fault>> = {
  [`key-tile-missing: ${where} are missing`]: { inOutput: times(0), inSum: times(0) },
  [`key-tile-twice: ${where} are counted twice`]: { inOutput: times(2), inSum: times(2) },
  [`key-tile-not-accumulated: the product of P and V is missing for ${where}`]: {
    inOutput: times(0),
  },
  [`key-tile-accumulated-twice: the product of P and V is added twice for ${where}`]: {
    inOutput: times(2),
  },
  [`key-tile-not-summed: ${where} are not in the row sum`]: { inSum: times(0) },
  [`key-tile-summed-twice: ${where} are in the row sum twice`]: { inSum: times(2) },
  [`key-tile-zero-keys: K of ${where} reads as zeros`]: { score: zero },
  [`key-tile-zero: K and V of ${where} read as zeros`]: { score: zero, inOutput: times(0) },
  [`key-tile-stale-values: V of ${where} is read from the tile before`]: { v: from(-16).v },
  [`key-tile-stale-keys: K of ${where} is read from the tile before`]: { k: from(-16).k },
  [`key-tile-stale: K and V of ${where} are read from the tile before`]: from(-16),
};

/** The fault of any tile as its statement says it, and the rows for which there is something to read. */
function plainFault({ id, statement }: Hypothesis) {
  const [begin, last] = [.../keys (\d+) to (\d+)/.exec(statement)!].slice(1).map(Number);
  const isIn = ({ key }: At) => key >= begin && key <= last;
  const by = (statement.includes('next tile') ? 1 : -1) * (last + 1 - begin);
  const read = (at: At) => (isIn(at) ? at.key + by : at.key);
  const factor = (x: number) => (at: At) => (isIn(at) ? x : 1);
  const k = (at: At, t: number) => book.k(at.batch, at.kvHead, read(at), t);
  const v = (at: At, c: number) => book.v(at.batch, at.kvHead, read(at), c);
  const score = (dot: number, at: At) => (isIn(at) ? 0 : own(dot));
  const [gone, twice] = [factor(0), factor(2)];
  const plain = {
    'key-tile-missing': { inOutput: gone, inSum: gone },
    'key-tile-twice': { inOutput: twice, inSum: twice },
    'key-tile-not-accumulated': { inOutput: gone },
    'key-tile-accumulated-twice': { inOutput: twice },
    'key-tile-not-summed': { inSum: gone },
    'key-tile-summed-twice': { inSum: twice },
    'key-tile-zero-keys': { score },
    'key-tile-zero': { score, inOutput: gone },
    'key-tile-stale-values': { v },
    'key-tile-stale-keys': { k },
    'key-tile-stale': { k, v },
  }[id] as Fault;
  const reads = (row: number) => {
    const at = book.rowAt(row);
    const seen = Array.from({ length: keys }, (_, key) => key).filter((key) =>
      book.sees({ ...at, key }),
    );
    const touched = seen.filter((key) => key >= begin && key <= last);
    const isLeft = seen.length > touched.length || !(plain.inSum === gone);
    const isInside = touched.every((key) => key + by >= 0 && key + by < keys);
    return isLeft && (isInside || !id.includes('stale'));
  };
  return { plain, reads };
}

describe('hypotheses about a tile of keys', () => {
  it.each(Object.entries(faults))('rank and predict %s', (name, fault) => {
    const context = contextOfFault(problem, fault);
    const all = [...keyTileHypotheses(context)];
    expect(all.map(({ id, statement }) => `${id}: ${statement}`)).toContain(name);
    expect(all.length).toBe(24);
    // The others are tried in other cases, in which they are ranked.
    for (const one of all.slice(0, 8)) {
      const { plain, reads } = plainFault(one);
      // Where a tile would be read from outside of the keys, nothing is said.
      const sample = context.sample.filter(({ row }) => reads(row));
      for (const row of context.sample) if (!reads(row.row)) expect(one.predict(row)).toBeNull();
      expectPredicts(one, { ...context, sample }, (row) => book.row(row, plain), 1e-9);
    }
  });

  it('read the tile behind', () => {
    const behind = ({ key }: At) => (key < 16 ? key + 16 : key);
    const k = (at: At, t: number) => book.k(at.batch, at.kvHead, behind(at), t);
    const v = (at: At, c: number) => book.v(at.batch, at.kvHead, behind(at), c);
    for (const [name, fault] of Object.entries({
      'key-tile-stale-values: V of keys 0 to 15 is read from the next tile': { v },
      'key-tile-stale-keys: K of keys 0 to 15 is read from the next tile': { k },
      'key-tile-stale: K and V of keys 0 to 15 are read from the next tile': { k, v },
    })) {
      const context = contextOfFault(problem, fault);
      const found = hypothesesOf(keyTileHypotheses, context);
      expectPredicts(found.get(name)!, context, (row) => book.row(row, fault), 1e-10);
    }
  });

  it('are ranked as well by the output alone', () => {
    for (const [name, fault] of Object.entries(faults).slice(0, 5)) {
      const context = contextOfFault(problem, fault, { hasLse: false });
      const found = hypothesesOf(keyTileHypotheses, context);
      expectPredicts(found.get(name)!, context, (row) => book.row(row, fault), 1e-10);
    }
  });

  it('rank the whole planted tile first among those of its kind and size', () => {
    const fault = faults[`key-tile-missing: ${where} are missing`];
    const context = contextOfFault(problem, fault);
    const [first] = keyTileHypotheses({ ...context, sample: context.sample.slice(0, 40) });
    expect(first.id).toBe('key-tile-missing');
  });

  it('add up a stretch of keys granule by granule, wherever K and V come from', () => {
    const context = contextOfFault(problem);
    for (const [keysFrom, valuesFrom, zeroKeys] of [
      [0, 0, false],
      [4, 0, false],
      [-4, 4, false],
      [0, -4, true],
    ] as const)
      for (const row of context.sample.filter(({ row: flat }) => flat % 9 === 5)) {
        const source = { keysFrom, valuesFrom, zeroKeys };
        const ofRow = createRowShares(context.reader)(row);
        const sums = new GranuleSums(context.reader, row, ofRow, 4, source);
        const at = book.rowAt(row.row);
        const { lse } = book.row(row.row);
        for (const [begin, end] of [
          [0, 4],
          [8, 20],
          [36, 40],
        ] as const) {
          let [weight, sum] = [0, 0];
          for (let key = begin; key < end; key++) {
            const read = key + keysFrom;
            if (!book.sees({ ...at, key }) || (!zeroKeys && (read < 0 || read >= keys))) continue;
            const dot = zeroKeys ? 0 : book.dot({ ...at, key: read });
            const w = Math.exp(own(dot) - lse);
            weight += w;
            const value = key + valuesFrom;
            if (value >= 0 && value < keys) sum += w * book.v(0, 0, value, 1);
          }
          expect(sums.weight({ begin, end })).toBeCloseTo(weight, 12);
          expect(sums.sum({ begin, end }, 1)).toBeCloseTo(sum, 12);
        }
      }
  });
});
