import type { Problem, ProblemShape } from '../../../../src/problem/index.js';
import type { BackwardInputs } from '../../../kernels/gradients/index.js';
import type { PlantedBug, StepChange } from './planted-bug.js';
import { packedSizes, pageSize } from './problems.js';

/** Rows of a tensor [heads, rows, columns] that are read from others. */
function readFrom(
  values: Float32Array,
  columns: number,
  from: (row: number) => number,
): Float32Array {
  const rows = values.length / columns;
  return values.map((_, i) => {
    const row = from(Math.floor(i / columns));
    return values[((row + rows) % rows) * columns + (i % columns)];
  });
}

/** One input, or more, read from other rows. */
const read =
  (
    names: readonly (keyof BackwardInputs)[],
    from: (row: number, shape: ProblemShape, problem: Problem) => number,
  ): StepChange =>
  (_, problem, shape) => ({
    inputs: (own) => ({
      ...own,
      ...Object.fromEntries(
        names.map((name) => [
          name,
          readFrom(own[name], name === 'v' || name === 'dout' ? shape.vDim : shape.qkDim, (row) =>
            from(row, shape, problem),
          ),
        ]),
      ),
    }),
  });

/** The place in [batch, heads, queries] that a place in [batch, queries, heads] is taken for. */
const asHeadsFirst = (row: number, { heads, queries }: ProblemShape): number => {
  const size = heads * queries;
  const [entry, at] = [Math.floor(row / size), row % size];
  // Element [h, q] of what is read is element h·queries + q of [queries, heads].
  const [query, head] = [Math.floor(at / heads), at % heads];
  return entry * size + head * queries + query;
};

/** Keys with two pages of the first sequence exchanged. */
const exchangedPages = (row: number, { keys }: ProblemShape): number => {
  const key = row % keys;
  const page = Math.floor(key / pageSize);
  if (key >= packedSizes[0][1] || (page !== 1 && page !== 2)) return row;
  return row + (page === 1 ? pageSize : -pageSize);
};

/** Inputs of something else. */
export const operandBugs: Readonly<Record<string, PlantedBug>> = {
  'K for V in dP': {
    change: () => ({ inputs: (own) => ({ ...own, v: own.k }) }),
    causes: ['keys-for-values'],
  },
  'V for K': {
    on: 'causal',
    change: () => ({ inputs: (own) => ({ ...own, k: own.v }) }),
    causes: ['values-for-keys'],
  },
  'dO of the next row': {
    change: read(['dout'], (row) => row + 1),
    causes: ['dout-of-others'],
  },
  'dO of the row before, causal': {
    on: 'causal',
    change: read(['dout'], (row) => row - 1),
    causes: ['dout-of-others'],
  },
  'dO of the next head': {
    on: 'grouped',
    change: read(['dout'], (row, { queries }) => row + queries),
    causes: ['dout-of-others'],
  },
  'dO of the other batch entry': {
    on: 'square',
    change: read(['dout'], (row, { queries, heads }) => row + queries * heads),
    causes: ['dout-of-others'],
  },
  'dO as [B, S, H, D]': {
    change: read(['dout'], asHeadsFirst),
    causes: ['dout-layout'],
  },
  'dO as [B, S, H, D], packed': {
    on: 'packed',
    change: read(['dout'], asHeadsFirst),
    causes: ['dout-layout'],
  },
  'dO as [B, S, H, D], and D of it': {
    on: 'square',
    change: (steps, problem, shape) => ({
      ...read(['dout'], asHeadsFirst)(steps, problem, shape),
      delta: ({ out, dout }) =>
        steps.delta({ out, dout: readFrom(dout, shape.vDim, (row) => asHeadsFirst(row, shape)) }),
    }),
    causes: ['dout-layout'],
  },
  'Q of the next row': {
    on: 'causal',
    change: read(['q'], (row) => row + 1),
    causes: ['queries-of-others'],
  },
  'Q of the head before': {
    on: 'grouped',
    change: read(['q'], (row, { queries }) => row - queries),
    causes: ['queries-of-others'],
  },
  'Q as [B, S, H, D]': {
    on: 'grouped',
    change: read(['q'], asHeadsFirst),
    causes: ['queries-layout'],
  },
  'every input as [B, S, H, D]': {
    change: (_, __, shape) => ({
      inputs: ({ q, k, v, dout }) => {
        const ofKeys = { ...shape, heads: shape.kvHeads, queries: shape.keys };
        const { qkDim, vDim } = shape;
        return {
          q: readFrom(q, qkDim, (row) => asHeadsFirst(row, shape)),
          k: readFrom(k, qkDim, (row) => asHeadsFirst(row, ofKeys)),
          v: readFrom(v, vDim, (row) => asHeadsFirst(row, ofKeys)),
          dout: readFrom(dout, vDim, (row) => asHeadsFirst(row, shape)),
        };
      },
    }),
    causes: ['inputs-layout'],
  },
  'K and V of another head of a group': {
    on: 'grouped',
    change: (_, __, { kvHeads }) => ({ kvHead: (head) => head % kvHeads }),
    causes: ['kv-head-of-another-group'],
    place: 'heads 1 and 4',
  },
  'V of the next head': {
    on: 'dropout',
    change: read(['v'], (row, { keys }) => row + keys),
    causes: ['values-of-others'],
  },
  'K of the other batch entry': {
    on: 'square',
    change: read(['k', 'v'], (row, { keys, kvHeads }) => row + keys * kvHeads),
    causes: ['keys-of-others'],
  },
  'two pages exchanged': {
    on: 'pages',
    change: read(['k', 'v'], exchangedPages),
    causes: ['wrong-page'],
    place: 'sequence 0, keys 16 to 47',
  },
  'pages of V exchanged': {
    on: 'pages',
    change: read(['v'], exchangedPages),
    causes: ['wrong-page'],
    place: 'sequence 0, keys 16 to 47',
  },
};
