import { describe, expect, it } from 'vitest';
import { describePlace } from '../../../../../src/audit/rows/index.js';
import type { BackwardOperands } from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import type { Replayed } from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { operandFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/operand-faults.js';
import { problemShape } from '../../../../../src/problem/index.js';
import { filledProblem, sequencesOf } from '../../../../setup/problems.js';

const [heads, pageSize] = [2, 3] as const;
const dims = { k: 2, v: 1 } as const;

/** The pages that are read in the place of one another, of packed sequences of so many keys. */
function pageFaults(keysOf: readonly number[], form: 'paged' | 'padded' = 'paged') {
  const sequences = sequencesOf(keysOf.map((keys) => [1, keys]));
  const keys = keysOf.reduce((sum, x) => sum + x);
  const frame = { heads, queries: keysOf.length, keys, dim: dims.k, vDim: dims.v };
  const problem = filledProblem(frame, () => 1, { sequences });
  const places = (columns: number) =>
    Float64Array.from({ length: heads * keys * columns }, (_, i) => i);
  const of = {
    failed: {
      problem: { ...problem, stored: { keys: { form, slotsPerGroup: pageSize } } },
      forward: { out: null, lse: null },
      measured: {
        shape: problemShape(problem),
        reference: { quantities: { out: { values: new Float64Array(heads * keysOf.length) } } },
      },
    },
    operands: {
      q: new Float64Array(heads * keysOf.length * dims.k),
      k: places(dims.k),
      v: places(dims.v),
      dout: new Float64Array(heads * keysOf.length * dims.v),
    },
  } as unknown as Replayed;
  const faults = [...operandFaults(of)].filter(({ id }) => id === 'wrong-page');
  return { faults, sequences, keys };
}

describe('pages that are read in the place of one another', () => {
  // Of the sequences, the second begins within a page of the first, and has a last page that is not full.
  const keysOf = [7, 10];
  const { faults, sequences, keys } = pageFaults(keysOf);

  /** The rows of K or V that are read, where two pages of a sequence change places: page by page, key by key. */
  function exchanged(sequence: number, [one, other]: readonly [number, number]): number[] {
    const { firstKey } = sequences[sequence];
    const read = Array.from({ length: heads * keys }, (_, row) => row);
    for (let head = 0; head < heads; head++)
      for (let slot = 0; slot < pageSize; slot++) {
        const [a, b] = [one, other].map((page) => head * keys + firstKey + page * pageSize + slot);
        [read[a], read[b]] = [b, a];
      }
    return read;
  }

  it.each<[sequence: number, one: number, other: number]>([
    [0, 0, 1],
    [1, 0, 1],
    [1, 0, 2],
    [1, 1, 2],
  ])('are those of sequence %d, %d and %d, in K, in V, or in both', (sequence, one, other) => {
    const read = exchanged(sequence, [one, other]);
    for (const [words, names] of [
      ['pages', ['k', 'v']],
      ['pages of V', ['v']],
      ['pages of K', ['k']],
    ] as const) {
      const sentence = `${words} ${one} and ${other} of sequence ${sequence} are read in the place of one another in the backward pass`;
      const [found, ...others] = faults.filter((fault) => fault.sentence === sentence);
      expect(others).toEqual([]);
      const operands: Partial<BackwardOperands> = found.change.operands!;
      expect(Object.keys(operands)).toEqual(names);
      for (const name of names) {
        const rows = read.flatMap((row) =>
          Array.from({ length: dims[name] }, (_, c) => row * dims[name] + c),
        );
        expect([...operands[name]!]).toEqual(rows);
      }
      const first = `keys ${one * pageSize} to ${one * pageSize + 2}`;
      const last = `${other * pageSize} to ${other * pageSize + 2}`;
      const members =
        other === one + 1
          ? `keys ${one * pageSize} to ${other * pageSize + 2}`
          : `${first} and ${last}`;
      expect(describePlace(found.place!)).toBe(`sequence ${sequence}, ${members}`);
    }
  });

  it('are two full pages of a sequence, of few pages', () => {
    expect(faults).toHaveLength(3 * (1 + 3));
    // Pairs of 24 pages are tried, and of no more.
    expect(pageFaults([24 * pageSize]).faults).toHaveLength((3 * 24 * 23) / 2);
    expect(pageFaults([25 * pageSize]).faults).toEqual([]);
    expect(pageFaults([24 * pageSize], 'padded').faults).toEqual([]);
  });
});
