import {
  type AttentionKernel,
  type DimensionName,
  type KernelPromises,
} from '../../../properties/index.js';
import { decodeTensor, encodeFromFloat64, formats, nextUp } from '../../../src/formats/index.js';
import {
  problemShape,
  storedOf,
  storeProblem,
  type Problem,
  type Sequence,
  type Tensor,
} from '../../../src/problem/index.js';

/** Queries and keys of the sequences of the problem that is given. */
const lengths = [
  [2, 9],
  [1, 5],
  [3, 7],
] as const;

/** The problem of the tests: three packed sequences in pages of 4, two kv heads with two query heads each. */
export function servedProblem(): Problem {
  let [firstQuery, firstKey] = [0, 0];
  const sequences = lengths.map(([queries, keys]): Sequence => {
    const sequence = { firstQuery, queries, firstKey, keys };
    firstQuery += queries;
    firstKey += keys;
    return sequence;
  });
  const tensor = (heads: number, rows: number, seed: number): Tensor => {
    const values = Float64Array.from({ length: heads * rows * 4 }, (_, i) =>
      Math.sin(seed + i + 1),
    );
    const data = encodeFromFloat64(formats.bf16, values);
    return { format: 'bf16', shape: [1, heads, rows, 4], data };
  };
  const problem: Problem = {
    q: tensor(4, firstQuery, 1),
    k: tensor(2, firstKey, 2),
    v: tensor(2, firstKey, 3),
    scale: 0.5,
    causal: true,
    window: null,
    softcap: null,
    sequences,
  };
  return storeProblem(problem, {
    queries: { kind: 'packed' },
    keys: { kind: 'paged', pageSize: 4 },
  });
}

/** A kernel that depends on nothing but each row: it gives Q, and of some sequences the next number in place of each. */
function copyingKernel(isChanged: (problem: Problem, sequence: number) => boolean) {
  return (problem: Problem): { readonly out: Tensor } => {
    const { q } = problem;
    const { queries, qkDim } = problemShape(problem);
    const changed = Uint8Array.from({ length: queries }, (_, query) => {
      const sequences = problem.sequences ?? [];
      const index = sequences.findIndex(
        ({ firstQuery, queries: count }) => query >= firstQuery && query < firstQuery + count,
      );
      return isChanged(problem, index) ? 1 : 0;
    });
    const values = decodeTensor(q).map((x, i) =>
      changed[Math.floor(i / qkDim) % queries] === 1 ? nextUp(formats.bf16, x) : x,
    );
    return { out: { ...q, data: encodeFromFloat64(formats.bf16, values) } };
  };
}

/** The second of two sequences; null for other batches. */
function secondOf({ sequences = [] }: Problem): Sequence | null {
  return sequences.length === 2 ? sequences[1] : null;
}

/** Whether the pages of the keys of a problem lie one behind the other. */
function isInOrder(problem: Problem): boolean {
  const slots = storedOf(problem)?.keys.slots ?? [];
  return [...slots].every((slot, i, all) => i === 0 || slot > all[i - 1]);
}

/** Faults that begin at a value of a dimension, each seen by that dimension alone. */
export const plantedFaults: Readonly<
  Record<
    Exclude<DimensionName, 'determinism' | 'splits'>,
    {
      /** The values that the search may name. */
      readonly values: readonly number[];
      readonly isChanged: (value: number, problem: Problem, sequence: number) => boolean;
    }
  >
> = {
  batch: {
    // The neighbour of two is another dimension; places are of eight.
    values: countedTo(64, 3),
    isChanged: (value, { sequences = [] }) => sequences.length >= value,
  },
  place: {
    values: countedTo(7, 1),
    isChanged: (value, _, sequence) => sequence >= value,
  },
  'neighbour-queries': {
    values: countedTo(256, 4),
    isChanged: (value, problem) => (secondOf(problem)?.queries ?? 0) >= value,
  },
  'neighbour-keys': {
    values: countedTo(1024, 8),
    isChanged: (value, problem) => (secondOf(problem)?.keys ?? 0) >= value,
  },
  queries: {
    values: countedTo(9, 3),
    isChanged: (value, { sequences = [] }) =>
      sequences.length === 1 && sequences[0].queries >= value,
  },
  heads: {
    values: countedTo(16, 3),
    isChanged: (value, problem) => problemShape(problem).kvHeads >= value,
  },
  'page-size': {
    values: [2, 4, 8, 16, 32, 64, 128, 256],
    isChanged: (value, problem) => (storedOf(problem)?.keys.slotsPerGroup ?? 0) >= value,
  },
  'page-order': { values: [1], isChanged: (_, problem) => !isInOrder(problem) },
};

function countedTo(last: number, first: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** The kernel with a fault that begins at a value of a dimension. */
export function plantedKernel(
  dimension: keyof typeof plantedFaults,
  value: number,
): AttentionKernel {
  const { isChanged } = plantedFaults[dimension];
  return copyingKernel((problem, sequence) => isChanged(value, problem, sequence));
}

/** The kernel without a fault, and what it promises. */
export const invariantKernel: AttentionKernel = copyingKernel(() => false);

/** Promises of numbers of splits, of which those from one on have other bits. */
export function splittingPromises(first: number): KernelPromises {
  return {
    splits: {
      counts: [1, 2, 3, 4, 8],
      kernel: (problem, splits) => copyingKernel(() => splits >= first)(problem),
    },
  };
}

/** The kernel whose run with a number, counted from 1, and those behind it have other bits. */
export function unsteadyKernel(run: number): AttentionKernel {
  let runs = 0;
  return (problem) => {
    runs++;
    const isOther = runs >= run;
    return copyingKernel(() => isOther)(problem);
  };
}
