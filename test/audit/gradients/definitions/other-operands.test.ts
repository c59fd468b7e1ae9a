import { describe, expect, it } from 'vitest';
import type { BackwardOperands } from '../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import type { Replayed } from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { operandFaults } from '../../../../src/audit/gradients/diagnosis/replayed/operand-faults.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';

/** The row of [batch, heads, rows] that a row is read from. */
type From = (entry: number, head: number, row: number) => number;

interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly rows: number;
}

/** Rows by what is said of them, beyond the last the first again. */
function wantedRows({ batch, heads, rows }: Sizes, one: string): ReadonlyMap<string, From> {
  const flat: From = (entry, head, row) => (entry * heads + head) * rows + row;
  const all = batch * heads * rows;
  const beside =
    (distance: number): From =>
    (...place) =>
      (flat(...place) + distance + all) % all;
  const ofBatch = (entry: number, at: number) => entry * heads * rows + at;
  return new Map([
    [`of the next ${one}`, beside(1)],
    [`of the ${one} before`, beside(-1)],
    ...(heads > 1
      ? ([
          ['of the next head', beside(rows)],
          ['of the head before', beside(-rows)],
          [
            'written as [batch, rows, heads, columns] and read as [batch, heads, rows, columns]',
            (entry, head, row) => {
              const at = head * rows + row;
              return ofBatch(entry, (at % heads) * rows + Math.floor(at / heads));
            },
          ],
          [
            'written as [batch, heads, rows, columns] and read as [batch, rows, heads, columns]',
            (entry, head, row) => {
              const at = head * rows + row;
              return ofBatch(entry, (at % rows) * heads + Math.floor(at / rows));
            },
          ],
        ] satisfies [string, From][])
      : []),
    ...(batch > 1
      ? ([['of another batch entry', beside(heads * rows)]] satisfies [string, From][])
      : []),
    ...(batch > 2
      ? ([['of the batch entry before', beside(-heads * rows)]] satisfies [string, From][])
      : []),
  ]);
}

/** Tensors whose elements are their places. */
function placesCase(batch: number, heads: number, kvHeads: number) {
  const frame = { batch, heads, kvHeads, queries: 3, keys: 4, dim: 2, vDim: 1 };
  const problem = filledProblem(frame, (i) => i);
  const shape = problemShape(problem);
  const places = (count: number) => Float64Array.from({ length: count }, (_, i) => i);
  const operands = {
    q: places(batch * heads * 6),
    k: places(batch * kvHeads * 8),
    v: places(batch * kvHeads * 4),
    dout: places(batch * heads * 3),
  };
  const out = places(batch * heads * 3).map((x) => 1 / (1 + x));
  const of = {
    failed: {
      problem,
      forward: { out: null, lse: null },
      measured: { shape, reference: { quantities: { out: { values: out } } } },
    },
    operands,
  } as unknown as Replayed;
  return { of, out, faults: [...operandFaults(of)] };
}

/** All places of [batch, heads, rows], as a tensor that is read from others has them. */
function readFrom({ batch, heads, rows }: Sizes, from: From, columns: number): number[] {
  return Array.from({ length: batch * heads * rows * columns }, (_, i) => {
    const at = Math.floor(i / columns);
    const [head, row] = [Math.floor(at / rows), at % rows];
    return from(Math.floor(head / heads), head % heads, row) * columns + (i % columns);
  });
}

describe('another dO, K or V is that of the rows that the cause says', () => {
  it.each([
    [1, 1, 1],
    [1, 2, 2],
    [2, 1, 1],
    [2, 4, 2],
    [3, 2, 1],
  ])('%d batch entries of %d heads, %d of K', (batch, heads, kvHeads) => {
    const { faults, out } = placesCase(batch, heads, kvHeads);
    const ofQueries = { batch, heads, rows: 3 };
    const left = new Set(faults);
    const take = (sentence: string) => {
      const found = faults.filter((one) => one.sentence.startsWith(sentence));
      found.forEach((one) => left.delete(one));
      return found;
    };
    for (const [words, from] of wantedRows(ofQueries, 'query')) {
      const verb = words.startsWith('written') ? 'is' : 'is that';
      const found = take(`dO ${verb} ${words} in the backward pass`);
      expect(found.map(({ id }) => id)).toEqual(
        Array(2).fill(verb === 'is' ? 'dout-layout' : 'dout-of-others'),
      );
      const dout = readFrom(ofQueries, from, 1);
      for (const { change } of found) expect([...change.operands!.dout!]).toEqual(dout);
      const [, ofIt] = found;
      expect(found.map(({ change }) => change.delta === undefined)).toEqual([true, false]);
      expect([...(ofIt.change.delta as Float64Array)]).toEqual(dout.map((x, i) => x * out[i]));
    }
    for (const [words, from] of wantedRows(ofQueries, 'query')) {
      const isLayout = words.startsWith('written');
      const found = take(`Q ${isLayout ? 'is' : 'is that'} ${words} in the backward pass`);
      expect(found).toHaveLength(1);
      const [{ change, id }] = found;
      expect(id).toBe(isLayout ? 'queries-layout' : 'queries-of-others');
      expect(Object.keys(change.operands!)).toEqual(['q']);
      expect([...change.operands!.q!]).toEqual(readFrom(ofQueries, from, 2));
    }
    const ofKeys = { batch, heads: kvHeads, rows: 4 };
    const columns = { k: 2, v: 1 } as const;
    for (const [names, subject, verb] of [
      [['k', 'v'], 'K and V are', ' those'],
      [['v'], 'V is', ' that'],
      [['k'], 'K is', ' that'],
    ] as const)
      for (const [words, from] of wantedRows(ofKeys, 'key')) {
        const isLayout = words.startsWith('written');
        const found = take(`${subject}${isLayout ? '' : verb} ${words} in the backward pass`);
        expect(found).toHaveLength(1);
        const [{ change, id }] = found;
        const others = subject === 'V is' ? 'values-of-others' : 'keys-of-others';
        expect(id).toBe(isLayout ? 'keys-layout' : others);
        const operands: Partial<BackwardOperands> = change.operands!;
        expect(Object.keys(operands)).toEqual(names);
        for (const name of names)
          expect([...operands[name]!], name).toEqual(readFrom(ofKeys, from, columns[name]));
      }
    const groups = take('query head h reads');
    expect(groups).toHaveLength(heads > kvHeads && kvHeads > 1 ? 2 : 0);
    for (const { change } of groups)
      for (let head = 0; head < batch * heads; head++)
        expect(change.kvHead!(head)).toBe(
          Math.floor(head / heads) * kvHeads + ((head % heads) % kvHeads),
        );
    expect([...left]).toEqual([]);
  });
});
