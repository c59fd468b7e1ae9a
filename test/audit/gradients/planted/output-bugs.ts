import type { ProblemShape } from '../../../../src/problem/index.js';
import type { GradientArrays, GradientOf } from '../../../kernels/gradients/index.js';
import { inRows, type PlantedBug, type StepChange } from './planted-bug.js';

/** Gradients changed behind their sums. */
const after =
  (change: (all: GradientArrays, shape: ProblemShape) => Partial<GradientArrays>): StepChange =>
  (_, __, shape) => ({ afterwards: (all) => ({ ...all, ...change(all, shape) }) });

const rowsOf = (of: GradientOf, { queries, keys }: ProblemShape) => (of === 'dq' ? queries : keys);
const columnsOf = (of: GradientOf, { qkDim, vDim }: ProblemShape) => (of === 'dv' ? vDim : qkDim);
const headsOf = (of: GradientOf, { heads, kvHeads }: ProblemShape) =>
  of === 'dq' ? heads : kvHeads;

/** A gradient with elements from elsewhere. */
const from = (
  of: GradientOf,
  place: (
    at: { readonly head: number; readonly row: number; readonly column: number },
    shape: ProblemShape,
  ) => readonly [head: number, row: number, column: number],
): StepChange =>
  after((all, shape) => {
    const [rows, columns] = [rowsOf(of, shape), columnsOf(of, shape)];
    const values = all[of];
    return {
      [of]: values.map((_, i) => {
        const at = {
          head: Math.floor(i / (rows * columns)),
          row: Math.floor(i / columns) % rows,
          column: i % columns,
        };
        const [head, row, column] = place(at, shape);
        return values[(head * rows + row) * columns + column];
      }),
    };
  });

/** A gradient of [batch, rows, heads] in the memory of [batch, heads, rows]. */
function rowsFirst(all: GradientArrays, of: GradientOf, shape: ProblemShape): Float32Array {
  const [heads, rows, columns] = [headsOf(of, shape), rowsOf(of, shape), columnsOf(of, shape)];
  const made = new Float32Array(all[of].length);
  for (let entry = 0; entry < shape.batch; entry++)
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < rows; row++) {
        const own = ((entry * heads + head) * rows + row) * columns;
        const to = ((entry * rows + row) * heads + head) * columns;
        made.set(all[of].subarray(own, own + columns), to);
      }
  return made;
}

const zeroed = (
  of: GradientOf,
  where: (at: { head: number; row: number; column: number }, shape: ProblemShape) => boolean,
): StepChange =>
  after((all, shape) => {
    const [rows, columns] = [rowsOf(of, shape), columnsOf(of, shape)];
    return {
      [of]: all[of].map((x, i) => {
        const head = Math.floor(i / (rows * columns));
        const at = { head, row: Math.floor(i / columns) % rows, column: i % columns };
        return where(at, shape) ? 0 : x;
      }),
    };
  });

/** Gradients that are right, and end up elsewhere. */
const stored: Readonly<Record<string, PlantedBug>> = {
  'dK for dV': {
    change: after(({ dk }) => ({ dv: dk })),
    causes: ['gradient-for-another'],
  },
  'dV for dK': {
    on: 'causal',
    change: after(({ dv }) => ({ dk: dv })),
    causes: ['gradient-for-another'],
  },
  'dK and dV exchanged': {
    on: 'window',
    change: after(({ dk, dv }) => ({ dk: dv, dv: dk })),
    causes: ['gradient-for-another'],
  },
  'dQ for dK': {
    on: 'square',
    change: after(({ dq }) => ({ dk: dq })),
    causes: ['gradient-for-another'],
  },
  'batch entries of dQ exchanged': {
    change: from('dq', ({ head, row, column }, { heads }) => [
      (head + heads) % (2 * heads),
      row,
      column,
    ]),
    causes: ['batches-exchanged'],
  },
  'heads of dK in another order': {
    change: from('dk', ({ head, row, column }, { heads }) => {
      const entry = Math.floor(head / heads);
      return [entry * heads + [2, 0, 3, 1][head % heads], row, column];
    }),
    causes: ['heads-permuted'],
  },
  'two heads of dQ exchanged': {
    on: 'grouped',
    change: from('dq', ({ head, row, column }) => [[0, 4, 2, 3, 1, 5][head], row, column]),
    causes: ['heads-permuted'],
    place: 'heads 1 and 4',
  },
  'every head of dV that of the next': {
    on: 'square',
    change: from('dv', ({ head, row, column }, { heads }) => [
      head - (head % heads) + ((head + 1) % heads),
      row,
      column,
    ]),
    causes: ['heads-moved'],
  },
  'dQ as [B, S, H, D]': {
    change: after((all, shape) => ({ dq: rowsFirst(all, 'dq', shape) })),
    causes: ['gradient-layout'],
  },
  'dK and dV as [B, S, H, D]': {
    on: 'grouped',
    change: after((all, shape) => ({
      dk: rowsFirst(all, 'dk', shape),
      dv: rowsFirst(all, 'dv', shape),
    })),
    causes: ['gradient-layout'],
  },
  'all gradients as [B, S, H, D], packed': {
    on: 'packed',
    change: after((all, shape) => ({
      dq: rowsFirst(all, 'dq', shape),
      dk: rowsFirst(all, 'dk', shape),
      dv: rowsFirst(all, 'dv', shape),
    })),
    causes: ['gradient-layout'],
  },
  'rows of dQ one further on': {
    on: 'causal',
    change: from('dq', ({ head, row, column }, { queries }) => [head, (row + 1) % queries, column]),
    causes: ['rows-moved'],
  },
  'halves of the columns of dK exchanged': {
    on: 'alibi',
    change: from('dk', ({ head, row, column }) => [head, row, (column + 8) % 16]),
    causes: ['columns-moved'],
  },
  "dV with dK's stride": {
    on: 'other dims',
    change: after(({ dv }, { keys, vDim, qkDim }) => ({
      dv: dv.map((_, i) => {
        const ofHead = keys * vDim;
        const at = i % ofHead;
        const to = Math.floor(at / vDim) * qkDim + (at % vDim);
        return to < ofHead ? dv[i - at + to] : 0;
      }),
    })),
    causes: ['wrong-stride'],
  },
  'the tail of dQ unwritten': {
    change: zeroed('dq', ({ row }) => row >= 64),
    causes: ['rows-zero'],
    place: 'queries 64 to 95',
  },
  'the last 32 rows of one head of dK unwritten': {
    on: 'window',
    change: zeroed('dk', ({ head, row }) => head === 1 && row >= 108),
    causes: ['rows-zero'],
    place: 'kv head 1, keys 108 to 139',
  },
  'dQ of one sequence unwritten': {
    on: 'packed',
    change: zeroed('dq', ({ row }) => row >= 40 && row < 70),
    causes: ['rows-zero'],
    place: 'sequence 1',
  },
  'half of the columns of dV unwritten': {
    on: 'sinks',
    change: zeroed('dv', ({ column }) => column >= 8),
    causes: ['columns-zero'],
    place: 'columns 8 to 15',
  },
  'a column of dV with the other sign': {
    on: 'grouped',
    change: after(({ dv }) => ({ dv: dv.map((x, i) => (i % 16 === 3 ? -x : x)) })),
    causes: ['column-sign'],
    place: 'column 3',
  },
  'dQ added to that of a launch before': {
    on: 'bias',
    change: after(({ dq }) => ({ dq: dq.map((x) => 2 * x) })),
    causes: ['accumulator-not-zeroed'],
  },
};

/** Shares of tiles and heads that are not added, or twice. */
const sums: Readonly<Record<string, PlantedBug>> = {
  'a tile of keys missing in dQ': {
    change: inRows(
      () => true,
      (_, __, { keys }) => ({
        factors: ({ of, values }) =>
          of === 'dq' ? values.map((x, i) => (i % keys >= 64 && i % keys < 128 ? 0 : x)) : values,
      }),
    ),
    causes: ['key-tile-missing'],
    place: 'keys 64 to 127',
  },
  'a tile of keys twice in dQ of one head': {
    on: 'causal',
    change: inRows(
      ({ head }) => head === 1,
      (_, __, { keys }) => ({
        factors: ({ of, values }) =>
          of === 'dq' ? values.map((x, i) => (i % keys < 64 ? 2 * x : x)) : values,
      }),
    ),
    causes: ['key-tile-twice'],
    place: 'head 1, keys 0 to 63',
  },
  'a tile of queries missing in dK and dV': {
    on: 'sinks',
    change: (_, __, { keys }) => ({
      factors: ({ of, values }) =>
        of === 'dq' ? values : values.map((x, i) => (i >= 64 * keys ? 0 : x)),
    }),
    causes: ['query-tile-missing'],
    place: 'queries 64 to 89',
  },
  'a tile of queries missing in dK and dV of one head': {
    change: inRows(
      ({ sequence, head }) => sequence === 1 && head === 0,
      (_, __, { keys }) => ({
        factors: ({ of, values }) =>
          of === 'dq' ? values : values.map((x, i) => (i < 64 * keys ? 0 : x)),
      }),
    ),
    causes: ['query-tile-missing'],
    place: 'sequence 1, kv head 0, queries 0 to 63',
  },
  'a tile of queries twice in dV': {
    on: 'window',
    change: (_, __, { keys }) => ({
      factors: ({ of, values }) =>
        of === 'dv' ? values.map((x, i) => (i < 64 * keys ? 2 * x : x)) : values,
    }),
    causes: ['query-tile-twice'],
    place: 'queries 0 to 63',
  },
  'one head of each group alone': {
    on: 'grouped',
    change: ({ heads }) => ({ heads: (kvHead) => heads(kvHead).slice(-1) }),
    causes: ['group-one-head'],
  },
  'the last head of one group alone': {
    on: 'grouped',
    change: ({ heads }) => ({
      heads: (kvHead) => (kvHead === 1 ? heads(kvHead).slice(-1) : heads(kvHead)),
    }),
    causes: ['group-one-head'],
    place: 'kv head 1',
  },
  'a head of each group missing': {
    on: 'grouped',
    change: ({ heads }) => ({ heads: (kvHead) => heads(kvHead).slice(1) }),
    causes: ['group-head-missing'],
  },
  'heads of another group': {
    on: 'grouped',
    change: (_, __, { kvHeads, groupSize }) => ({
      heads: (kvHead) => Array.from({ length: groupSize }, (___, i) => kvHead + i * kvHeads),
    }),
    causes: ['heads-of-another-group'],
  },
  'the mean over a group': {
    on: 'grouped',
    change: after(({ dk, dv }) => ({ dk: dk.map((x) => x / 3), dv: dv.map((x) => x / 3) })),
    causes: ['group-mean'],
  },
};

/** Bugs of what is summed, and of where it goes. */
export const outputBugs = { ...stored, ...sums };
