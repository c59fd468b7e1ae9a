import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  BackwardChange,
  BackwardOperands,
} from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import type { Replayed } from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { viewFaults } from '../../../../../src/audit/gradients/diagnosis/replayed/view-faults.js';
import { problemShape } from '../../../../../src/problem/index.js';
import { filledProblem } from '../../../../setup/problems.js';

type Input = keyof BackwardOperands;

const drawns = fc.record({
  batch: fc.constantFrom(1, 2),
  kvHeads: fc.constantFrom(1, 2),
  groupSize: fc.constantFrom(1, 3),
  queries: fc.constantFrom(1, 3),
  keys: fc.constantFrom(1, 4),
  hasStored: fc.boolean(),
  hasOut: fc.boolean(),
  hasDq: fc.boolean(),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

const dims = { q: 2, k: 2, v: 3, dout: 3 } as const;

/** A failed audit whose tensors' elements are their places. */
function placesOf(of: Drawn) {
  const { batch, kvHeads, queries, keys } = of;
  const heads = kvHeads * of.groupSize;
  const frame = { batch, heads, kvHeads, queries, keys, dim: dims.q, vDim: dims.v };
  const shape = problemShape(filledProblem(frame, () => 1));
  const places = (length: number) => Float64Array.from({ length }, (_, i) => i);
  const rows = batch * heads * queries;
  const operands = {
    q: places(rows * dims.q),
    k: places(batch * kvHeads * keys * dims.k),
    v: places(batch * kvHeads * keys * dims.v),
    dout: places(rows * dims.dout),
  };
  const exactOut = operands.dout.map((i) => 1 / (1 + i));
  const stored = operands.dout.map((i) => (i % 7) - 3);
  const data = Float64Array.from(stored);
  const out = of.hasOut ? { format: 'fp64', shape: [data.length], data } : null;
  const delta = Float64Array.from({ length: rows }, (_, row) => row + 0.5);
  const replayed = {
    failed: {
      given: (of.hasDq ? ['dq', 'dk'] : ['dk', 'dv']).map((name) => ({ quantity: { name } })),
      forward: { out, lse: null },
      measured: { shape, reference: { quantities: { out: { values: exactOut } } } },
    },
    operands,
    stored: of.hasStored ? { delta, logarithm: delta } : null,
    scope: null,
  } as unknown as Replayed;
  return { replayed, shape, operands, delta, ownOut: of.hasOut ? stored : exactOut };
}

const memories = {
  'written as [batch, rows, heads, columns] and read as [batch, heads, rows, columns]': true,
  'written as [batch, heads, rows, columns] and read as [batch, rows, heads, columns]': false,
} as const;

/** The row that is read in the place of each: in memory rows come first or heads do, and the other order is read. */
function sourcesOf(batch: number, heads: number, rows: number, isRowsFirst: boolean): number[] {
  const sources: number[] = [];
  for (let entry = 0; entry < batch; entry++) {
    const inMemory: number[] = [];
    const [outer, inner] = isRowsFirst ? [rows, heads] : [heads, rows];
    for (let i = 0; i < outer; i++)
      for (let j = 0; j < inner; j++)
        inMemory.push(entry * heads * rows + (isRowsFirst ? j * rows + i : i * rows + j));
    if (isRowsFirst) sources.push(...inMemory);
    // What is read as [rows, heads] is, for each head, every so many rows of memory.
    else
      for (let head = 0; head < heads; head++)
        for (let row = 0; row < rows; row++) sources.push(inMemory[row * heads + head]);
  }
  return sources;
}

const readRows = (values: Float64Array, columns: number, sources: readonly number[]) =>
  sources.flatMap((row) => [...values.subarray(row * columns, (row + 1) * columns)]);

const inputsOf: Readonly<Record<string, readonly Input[]>> = {
  'Q, K and V': ['q', 'k', 'v'],
  'Q, K, V and dO': ['q', 'k', 'v', 'dout'],
  'K and V': ['k', 'v'],
  'Q and K': ['q', 'k'],
  Q: ['q'],
  K: ['k'],
  V: ['v'],
  'Q and dO': ['q', 'dout'],
};

/** A change as lists of numbers, its written rows as the row that each row is written to, and back. */
function plain(change: BackwardChange, rowsOf: (input: Input) => number) {
  const { operands, written, delta, ...rest } = change;
  const list = (of: ArrayLike<number> | string | undefined) =>
    typeof of === 'object' ? Array.from(of) : of;
  const places = (input: Input) => Array.from({ length: rowsOf(input) }, (_, row) => row);
  return {
    ...rest,
    delta: list(delta),
    operands: Object.fromEntries(
      Object.entries(operands ?? {}).map(([name, values]) => [name, list(values)]),
    ),
    written:
      written &&
      Object.fromEntries(
        Object.entries(written).map(([name, { to, from }]) => {
          const own = places(name.slice(1) as Input);
          expect(own.map((row) => from(to(row)))).toEqual(own);
          return [name, own.map(to)];
        }),
      ),
  };
}

/** All faults of views, by what is said of them, in plain lists. */
function wantedFaults(of: Drawn) {
  const { shape, operands, delta, ownOut } = placesOf(of);
  const { batch, heads, kvHeads, queries, keys } = shape;
  const all: [string, unknown][] = [];
  const sizes = {
    q: [heads, queries],
    k: [kvHeads, keys],
    v: [kvHeads, keys],
    dout: [heads, queries],
  };
  const hasOther = (input: Input) => sizes[input].every((size) => size > 1);
  const readings = Object.entries(memories).map(([words, isRowsFirst]) => {
    const sources = (input: Input) => {
      const [ofInput, rows] = sizes[input];
      return sourcesOf(batch, ofInput, rows, isRowsFirst);
    };
    const read = (inputs: readonly Input[]) =>
      Object.fromEntries(
        inputs.map((name) => [name, readRows(operands[name], dims[name], sources(name))]),
      );
    return { words, sources, read };
  });
  const bothPasses = [
    ...Object.keys(inputsOf).map((name) => ({ name, isBack: true })),
    { name: 'Q, K and V', isBack: false },
    { name: 'Q, K, V and dO', isBack: false },
  ];
  for (const { words, sources, read } of of.hasDq ? readings : [])
    for (const { name, isBack } of bothPasses) {
      const inputs = inputsOf[name];
      if (!inputs.every(hasOther)) continue;
      const [verb, its] =
        inputs.length === 1 ? ['is', 'its gradient is'] : ['are', 'gradients are'];
      const so = isBack ? `, and ${its} written so` : '';
      const sentence = `view-for-transpose: ${name} ${verb} ${words}, in the forward and the backward pass${so}: a view in place of a transpose`;
      const change = {
        logarithm: 'scores',
        operands: read(inputs),
        written: isBack
          ? Object.fromEntries(
              inputs.filter((one) => one !== 'dout').map((one) => [`d${one}`, sources(one)]),
            )
          : undefined,
      };
      const moved = inputs.includes('dout') ? readRows(delta, 1, sources('dout')) : [...delta];
      if (of.hasStored) all.push([sentence, { ...change, delta: moved }]);
      all.push([sentence, { ...change, delta: 'weights' }]);
    }
  for (const { words, read } of readings)
    for (const name of ['Q and K', 'Q, K and V', 'Q, K, V and dO']) {
      if (!inputsOf[name].every(hasOther)) continue;
      const sentence = `inputs-layout: ${name} are ${words} in the backward pass`;
      const change = { operands: read(inputsOf[name]), delta: undefined, written: undefined };
      all.push([sentence, change]);
      const { dout } = change.operands;
      if (!inputsOf[name].includes('dout')) continue;
      const made = delta.map((_, row) => {
        let sum = 0;
        for (let i = row * dims.v; i < (row + 1) * dims.v; i++) sum += dout[i] * ownOut[i];
        return sum;
      });
      all.push([`${sentence}, and D is made of that dO`, { ...change, delta: [...made] }]);
    }
  return all;
}

describe('faults of views', () => {
  it('are all that the axes allow, and move the rows that they say', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const { replayed, operands } = placesOf(drawn);
        const rowsOf = (input: Input) => operands[input].length / dims[input];
        const found = [...viewFaults(replayed)].map(({ id, sentence, change }) => [
          `${id}: ${sentence}`,
          plain(change, rowsOf),
        ]);
        expect(found).toEqual(wantedFaults(drawn));
      }),
      { numRuns: 40 },
    );
  });

  it('are none of some rows alone', () => {
    const drawn = { batch: 1, kvHeads: 2, groupSize: 1, queries: 3, keys: 4 } as const;
    const { replayed } = placesOf({ ...drawn, hasStored: true, hasOut: true, hasDq: true });
    expect([...viewFaults(replayed)]).not.toEqual([]);
    expect([...viewFaults({ ...replayed, scope: new Uint8Array(6) })]).toEqual([]);
  });
});
