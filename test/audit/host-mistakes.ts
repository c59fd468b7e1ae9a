import type { KernelOutputs } from '../../src/audit/index.js';
import { encodeFromFloat64, formats, type Tensor } from '../../src/formats/index.js';
import {
  keptWeights,
  problemShape,
  storedOf,
  storeProblem,
  type BooleanTensor,
  type Problem,
  type Sequence,
} from '../../src/problem/index.js';
import { filledProblem, sequencesOf, uniformNumbers } from '../setup/problems.js';
import { decode, encode } from './damage.js';
import { liberalKernel } from './features/liberal-kernel.js';
import { normalNumbers } from './planted-bugs.js';

/** A mistake of the host, or with a feature: a sound kernel that computes another problem than it should. */
export interface HostMistake {
  readonly family: string;
  readonly on: () => Problem;
  readonly outputs: (problem: Problem) => KernelOutputs;
  /** What the diagnosis may say is the cause, alone or among its equivalents, besides `unexplained`. */
  readonly causes: readonly string[];
  /** The place as it is described; default everywhere. */
  readonly place?: string;
}

const seed = 20_261_124;

function drawn(
  frame: Partial<Parameters<typeof filledProblem>[0]> = {},
  changes: Partial<Problem> = {},
): Problem {
  const sizes = { heads: 4, queries: 96, keys: 96, dim: 32, ...frame };
  return filledProblem(sizes, normalNumbers(seed), changes);
}

function fp32(shape: readonly number[], value: (index: number) => number): Tensor {
  const length = shape.reduce((a, b) => a * b, 1);
  const values = Float64Array.from({ length }, (_, i) => value(i));
  return { format: 'fp32', shape, data: encodeFromFloat64(formats.fp32, values) };
}

function truths(shape: readonly number[], value: (index: number) => boolean): BooleanTensor {
  const length = shape.reduce((a, b) => a * b, 1);
  return { shape, data: Uint8Array.from({ length }, (_, i) => (value(i) ? 1 : 0)) };
}

/** Problems that mistakes are made on. */
const problems = {
  heads: () => drawn(),
  square: () => drawn({ heads: 2, queries: 128, keys: 128 }),
  grouped: () => drawn({ heads: 8, kvHeads: 4, queries: 64 }),
  batches: () => drawn({ batch: 3, heads: 2, queries: 64, keys: 64 }),
  causal: () => drawn({ heads: 2, queries: 128, keys: 128 }, { causal: true }),
  packed: () =>
    drawn(
      { heads: 2, queries: 104, keys: 123 },
      {
        sequences: sequencesOf([
          [40, 59],
          [64, 64],
        ]),
      },
    ),
  paged: () => {
    const sequences: Sequence[] = sequencesOf([
      [32, 80],
      [32, 64],
    ]);
    const problem = drawn({ heads: 4, kvHeads: 4, queries: 64, keys: 144 }, { sequences });
    const arrange = (pages: number) => Array.from({ length: pages }, (_, i) => (i * 5 + 4) % pages);
    return storeProblem(
      problem,
      { queries: { kind: 'packed' }, keys: { kind: 'paged', pageSize: 16, spare: 2, arrange } },
      0.5,
    );
  },
  alibi: () =>
    drawn({ heads: 2, queries: 64, keys: 128 }, { alibiSlopes: fp32([2], (h) => 0.06 / (h + 1)) }),
  'causal alibi': () =>
    drawn(
      { heads: 2, queries: 64, keys: 128 },
      { causal: true, alibiSlopes: fp32([2], (h) => 0.06 / (h + 1)) },
    ),
  bias: () => {
    const next = normalNumbers(7);
    return drawn({ heads: 2 }, { bias: fp32([1, 2, 96, 96], () => next()) });
  },
  'softcap and bias': () => {
    const next = normalNumbers(7);
    return drawn({ heads: 2 }, { softcap: 2, bias: fp32([1, 2, 96, 96], () => next()) });
  },
  mask: () => {
    const next = uniformNumbers(8);
    return drawn({ heads: 2 }, { mask: truths([1, 2, 96, 96], () => next() < 0.6) });
  },
  sink: () => drawn({ heads: 2 }, { sink: { logits: fp32([2], (h) => 1.5 + h), inLse: true } }),
  dropout: () => {
    const next = uniformNumbers(9);
    const kept = truths([1, 2, 96, 96], () => next() < 0.75);
    return drawn({ heads: 2 }, { dropout: { kept, probability: 0.25 } });
  },
  documents: () => {
    const data = Int32Array.from({ length: 96 }, (_, i) => (i < 30 ? 0 : i < 70 ? 1 : 2));
    const segment = { shape: [96], data };
    return drawn({ heads: 2 }, { segments: { queries: segment, keys: segment } });
  },
  prefix: () => drawn({ heads: 2 }, { causal: true, prefix: 24 }),
  window: () => drawn({ heads: 2 }, { window: { left: 20, right: 10 } }),
} as const satisfies Record<string, () => Problem>;

const sound = {
  tile: 64,
  order: 'ascending',
  base: 2,
  scale: 'before',
  alibi: 'distance',
  sink: 'at-the-end',
  dropout: 'at-the-end',
  division: 'last',
} as const;

/** A sound kernel with every feature. */
export const runSoundKernel = (problem: Problem): KernelOutputs =>
  liberalKernel(problem, 'bf16', sound);

const run = runSoundKernel;

/** A tensor whose rows of the last axis are others of it. */
function rowsFrom(tensor: Tensor, from: (row: number) => number): Tensor {
  const dim = tensor.shape.at(-1)!;
  const values = decode(tensor);
  const moved = values.map((_, i) => values[from(Math.floor(i / dim)) * dim + (i % dim)]);
  return encode(moved, tensor.format, tensor.shape);
}

/** Outputs whose rows are others of them. */
function outputsFrom({ out, lse }: KernelOutputs, from: (row: number) => number): KernelOutputs {
  const moved = (tensor: Tensor) => rowsFrom({ ...tensor, shape: [...tensor.shape, 1] }, from);
  return {
    out: rowsFrom(out, from),
    lse: lse === null ? null : { ...moved(lse), shape: lse.shape },
  };
}

type Change = (problem: Problem) => Problem;

const mistake = (
  family: string,
  on: keyof typeof problems,
  change: Change,
  causes: readonly string[],
  place?: string,
): HostMistake => ({
  family,
  on: problems[on],
  outputs: (problem) => run(change(problem)),
  causes,
  ...(place === undefined ? {} : { place }),
});

const misplaced = (
  on: keyof typeof problems,
  from: (row: number, problem: Problem) => number,
  causes: readonly string[],
  place?: string,
): HostMistake => ({
  family: 'output',
  on: problems[on],
  outputs: (problem) => outputsFrom(run(problem), (row) => from(row, problem)),
  causes,
  ...(place === undefined ? {} : { place }),
});

/** The flat row of [batch, seqlen, heads] memory where [batch, heads, seqlen] is looked for. */
const asHeadsFirst = (rows: number, heads: number) => (row: number) => {
  const inBatch = row % (rows * heads);
  return row - inBatch + (inBatch % heads) * rows + Math.floor(inBatch / heads);
};

const asSequenceFirst = (rows: number, heads: number) => (row: number) => {
  const inBatch = row % (rows * heads);
  return row - inBatch + (inBatch % rows) * heads + Math.floor(inBatch / rows);
};

const viewed =
  (names: readonly ('q' | 'k' | 'v')[], by: typeof asHeadsFirst): Change =>
  (problem) => {
    const { heads, kvHeads, queries, keys } = problemShape(problem);
    const of = (name: 'q' | 'k' | 'v') =>
      rowsFrom(problem[name], name === 'q' ? by(queries, heads) : by(keys, kvHeads));
    return { ...problem, ...Object.fromEntries(names.map((name) => [name, of(name)])) };
  };

/** A kernel between views: inputs are read in another order, and the output is written in that order. */
const betweenViews = (
  on: keyof typeof problems,
  names: readonly ('q' | 'k' | 'v')[],
  [by, back]: readonly [typeof asHeadsFirst, typeof asHeadsFirst],
  place?: string,
): HostMistake => ({
  family: 'layout',
  on: problems[on],
  outputs: (problem) => {
    const { heads, queries } = problemShape(problem);
    const { out, lse } = run(viewed(names, by)(problem));
    return { out: rowsFrom(out, back(queries, heads)), lse };
  },
  causes: ['view-for-transpose'],
  ...(place === undefined ? {} : { place }),
});

/** Heads of a tensor by the order that is read. */
const headsFrom =
  (names: readonly ('q' | 'k' | 'v')[], order: readonly number[]): Change =>
  (problem) => {
    const of = (name: 'q' | 'k' | 'v') => {
      const [heads, rows] = problem[name].shape.slice(-3) as [number, number, number];
      return rowsFrom(problem[name], (row) => {
        const head = Math.floor(row / rows);
        return (head - (head % heads) + order[head % heads]) * rows + (row % rows);
      });
    };
    return { ...problem, ...Object.fromEntries(names.map((name) => [name, of(name)])) };
  };

const order = [2, 0, 3, 1];

/** [batch, heads, seqlen] with the last two axes exchanged. */
function transposed(tensor: Tensor): Tensor {
  const [batch, heads, rows, dim] = tensor.shape as [number, number, number, number];
  const moved = rowsFrom(tensor, asHeadsFirst(rows, heads));
  return { ...moved, shape: [batch, rows, heads, dim] };
}

const layouts: Readonly<Record<string, HostMistake>> = {
  '[B, S, H, D] read as bhsd by the kernel': {
    family: 'layout',
    on: problems.square,
    outputs: (problem) => {
      const { q, k, v } = problem;
      const { out, lse } = run({
        ...problem,
        q: transposed(q),
        k: transposed(k),
        v: transposed(v),
      });
      return {
        out: transposed(out),
        lse: { ...transposed({ ...lse!, shape: [...lse!.shape, 1] }), shape: [1, 2, 128] },
      };
    },
    causes: ['axes-exchanged'],
  },
  '[B, S, H, D] read as bhsd by the audit': {
    family: 'layout',
    on: () => {
      const problem = drawn({ heads: 24, queries: 24, keys: 24 });
      const { q, k, v } = problem;
      return { ...problem, q: transposed(q), k: transposed(k), v: transposed(v), causal: true };
    },
    outputs: (problem) => {
      const { q, k, v } = problem;
      const { out } = run({ ...problem, q: transposed(q), k: transposed(k), v: transposed(v) });
      return { out: transposed(out), lse: null };
    },
    causes: ['axes-exchanged'],
    place: '575 of 576 rows',
  },
  'inputs viewed for transposed': mistake(
    'layout',
    'heads',
    viewed(['q', 'k', 'v'], asHeadsFirst),
    ['view-for-transpose'],
  ),
  'inputs viewed for transposed, the other way': mistake(
    'layout',
    'heads',
    viewed(['q', 'k', 'v'], asSequenceFirst),
    ['view-for-transpose'],
  ),
  'K and V viewed for transposed': mistake('layout', 'grouped', viewed(['k', 'v'], asHeadsFirst), [
    'view-for-transpose',
  ]),
  'Q viewed for transposed': mistake(
    'layout',
    'heads',
    viewed(['q'], asHeadsFirst),
    ['view-for-transpose'],
    '382 of 384 rows',
  ),
  'V viewed for transposed': mistake('layout', 'heads', viewed(['v'], asSequenceFirst), [
    'view-for-transpose',
  ]),
  'inputs viewed for transposed under a causal mask': mistake(
    'layout',
    'causal',
    viewed(['q', 'k', 'v'], asHeadsFirst),
    ['view-for-transpose'],
    '255 of 256 rows',
  ),
  'inputs of three batches viewed for transposed': mistake(
    'layout',
    'batches',
    viewed(['q', 'k', 'v'], asHeadsFirst),
    ['view-for-transpose'],
  ),
  'Q and K viewed for transposed': mistake('layout', 'grouped', viewed(['q', 'k'], asHeadsFirst), [
    'view-for-transpose',
  ]),
  'Q and V of packed sequences viewed for transposed': mistake(
    'layout',
    'packed',
    viewed(['q', 'v'], asSequenceFirst),
    ['view-for-transpose'],
  ),
  'inputs viewed, and the output back': betweenViews(
    'heads',
    ['q', 'k', 'v'],
    [asHeadsFirst, asSequenceFirst],
  ),
  'inputs of grouped heads viewed, and the output back': betweenViews(
    'grouped',
    ['q', 'k', 'v'],
    [asSequenceFirst, asHeadsFirst],
  ),
  'inputs of three batches viewed, and the output back': betweenViews(
    'batches',
    ['q', 'k', 'v'],
    [asHeadsFirst, asSequenceFirst],
  ),
  'inputs viewed under a causal mask, and the output back': betweenViews(
    'causal',
    ['q', 'k', 'v'],
    [asHeadsFirst, asSequenceFirst],
    '255 of 256 rows',
  ),
  'Q viewed, and the output back': betweenViews(
    'grouped',
    ['q'],
    [asHeadsFirst, asSequenceFirst],
    '384 of 512 rows',
  ),
  'K and V viewed, and the output back': {
    ...betweenViews('heads', ['k', 'v'], [asHeadsFirst, asSequenceFirst]),
    // No host does so, and no cause is to be named.
    causes: [],
  },
  'output viewed for transposed': misplaced(
    'heads',
    (row, problem) => {
      const { queries, heads } = problemShape(problem);
      return asHeadsFirst(queries, heads)(row);
    },
    ['view-for-transpose'],
    '382 of 384 rows',
  ),
  'output of grouped heads viewed for transposed': misplaced(
    'grouped',
    (row, problem) => {
      const { queries, heads } = problemShape(problem);
      return asSequenceFirst(queries, heads)(row);
    },
    ['view-for-transpose'],
    '504 of 512 rows',
  ),
};

const tensors: Readonly<Record<string, HostMistake>> = {
  'K in place of V': mistake('tensor', 'heads', (p) => ({ ...p, v: p.k }), ['wrong-tensor']),
  'V in place of K': mistake('tensor', 'heads', (p) => ({ ...p, k: p.v }), ['wrong-tensor']),
  'K and V exchanged': mistake('tensor', 'grouped', (p) => ({ ...p, k: p.v, v: p.k }), [
    'wrong-tensor',
  ]),
  'K in place of V under a causal mask': mistake('tensor', 'causal', (p) => ({ ...p, v: p.k }), [
    'wrong-tensor',
  ]),
  'Q in place of K': mistake('tensor', 'heads', (p) => ({ ...p, k: p.q }), ['wrong-tensor']),
  'K in place of Q': mistake('tensor', 'heads', (p) => ({ ...p, q: p.k }), ['wrong-tensor']),
  'K in place of V, packed': mistake('tensor', 'packed', (p) => ({ ...p, v: p.k }), [
    'wrong-tensor',
  ]),
};

const heads: Readonly<Record<string, HostMistake>> = {
  'heads of K and V in another order': mistake('heads', 'heads', headsFrom(['k', 'v'], order), [
    'kv-heads-permuted',
  ]),
  'heads of V in another order': mistake('heads', 'heads', headsFrom(['v'], order), [
    'kv-heads-permuted',
  ]),
  'heads of K in another order': mistake('heads', 'grouped', headsFrom(['k'], order), [
    'kv-heads-permuted',
  ]),
  'heads of Q in another order': mistake('heads', 'heads', headsFrom(['q'], order), [
    'query-heads-permuted',
  ]),
  'two heads of V exchanged': mistake(
    'heads',
    'heads',
    headsFrom(['v'], [0, 3, 2, 1]),
    ['kv-heads-permuted'],
    'heads 1 and 3',
  ),
  'heads of the output in another order': misplaced(
    'heads',
    (row) => order[Math.floor(row / 96)] * 96 + (row % 96),
    ['heads-permuted'],
  ),
  'two heads of the output exchanged': misplaced(
    'grouped',
    (row) => {
      const head = Math.floor(row / 64);
      return (head === 2 ? 5 : head === 5 ? 2 : head) * 64 + (row % 64);
    },
    ['heads-permuted'],
    'heads 2 and 5',
  ),
  'batches of K and V rotated': mistake(
    'batch',
    'batches',
    (p) => {
      const next = (tensor: Tensor) => rowsFrom(tensor, (row) => (row + 2 * 64) % (3 * 2 * 64));
      return { ...p, k: next(p.k), v: next(p.v) };
    },
    ['neighbouring-batch'],
  ),
  'batches of the output rotated': misplaced('batches', (row) => (row + 2 * 64) % (3 * 2 * 64), [
    'heads-permuted',
  ]),
};

/** A problem whose keys are those of other places of the cache. */
const slotsFrom =
  (
    from: (
      slot: number,
      head: number,
      problem: Problem,
      key: number,
    ) => readonly [slot: number, head: number],
  ): Change =>
  (problem) => {
    const stored = storedOf(problem)!;
    const { kvHeads, keys } = problemShape(problem);
    const of = (name: 'k' | 'v') => {
      const tensor = problem[name];
      const cache = stored.tensors![name] as Tensor;
      const dim = tensor.shape.at(-1)!;
      const [values, memory] = [decode(tensor), decode(cache)];
      const moved = values.map((_, i) => {
        const row = Math.floor(i / dim);
        const [slot, head] = from(
          stored.keys.slots[row % keys],
          Math.floor(row / keys),
          problem,
          row % keys,
        );
        return memory[(slot * kvHeads + head) * dim + (i % dim)];
      });
      return encode(moved, tensor.format, tensor.shape);
    };
    return { ...problem, k: of('k'), v: of('v') };
  };

/** The page of a sequence's key, counted within it; its own where there is none. */
const pageOf = (problem: Problem, sequence: number, key: number) => {
  const { firstKey } = problem.sequences![sequence];
  return Math.floor(storedOf(problem)!.keys.slots[firstKey + key] / 16);
};

const placeOf = (key: number) =>
  key < 80 ? { sequence: 0, at: key } : { sequence: 1, at: key - 80 };

const pages: Readonly<Record<string, HostMistake>> = {
  'page size and heads exchanged': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head) => {
      const row = head * 16 + (slot % 16);
      return [slot - (slot % 16) + Math.floor(row / 4), row % 4];
    }),
    ['page-axes-exchanged'],
  ),
  'block table shifted by one': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head, problem, key) => {
      const { sequence, at } = placeOf(key);
      const { keys } = problem.sequences![sequence];
      const next = Math.min(at + 16, keys - 1);
      const page = at + 16 < keys ? pageOf(problem, sequence, next) : Math.floor(slot / 16);
      return [page * 16 + (slot % 16), head];
    }),
    ['block-table-shifted'],
  ),
  'block table shifted by one, over sequences': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head, problem, key) => {
      const { sequence, at } = placeOf(key);
      const { keys } = problem.sequences![sequence];
      const page =
        at + 16 < keys
          ? pageOf(problem, sequence, at + 16)
          : sequence === 0
            ? pageOf(problem, 1, 0)
            : Math.floor(slot / 16);
      return [page * 16 + (slot % 16), head];
    }),
    ['block-table-shifted'],
  ),
  'pages off by one': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head) => [slot + 16, head]),
    ['block-table-shifted'],
  ),
  'block table ignored': mistake(
    'pages',
    'paged',
    slotsFrom((_, head, _problem, key) => [placeOf(key).at, head]),
    ['block-table-ignored'],
  ),
  'one wrong page': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head, problem, key) => [
      key >= 96 && key < 112 ? pageOf(problem, 0, 32) * 16 + (slot % 16) : slot,
      head,
    ]),
    ['wrong-page'],
    'sequence 1',
  ),
  'pages of the next sequence': mistake(
    'pages',
    'paged',
    slotsFrom((slot, head, problem, key) => {
      const { sequence, at } = placeOf(key);
      const page = sequence === 0 && at < 64 ? pageOf(problem, 1, at) : Math.floor(slot / 16);
      return [page * 16 + (slot % 16), head];
    }),
    ['page-of-other-sequence'],
    'sequence 0',
  ),
};

/** Sequences that read other keys than theirs. */
const keysFrom =
  (
    read: (one: Sequence, index: number) => { readonly first: number; readonly count: number },
  ): Change =>
  (problem) => {
    const reads = problem.sequences!.map(read);
    const others = sequencesOf(problem.sequences!.map((one, i) => [one.queries, reads[i].count]));
    const sources = reads.flatMap(({ first, count }) =>
      Array.from({ length: count }, (_, i) => first + i),
    );
    const of = (tensor: Tensor): Tensor => {
      const [heads, keys, dim] = tensor.shape.slice(-3) as [number, number, number];
      const values = decode(tensor);
      const read = new Float64Array(heads * sources.length * dim);
      for (let head = 0; head < heads; head++)
        sources.forEach((key, i) => {
          const from = (head * keys + key) * dim;
          read.set(values.subarray(from, from + dim), (head * sources.length + i) * dim);
        });
      return encode(read, tensor.format, [1, heads, sources.length, dim]);
    };
    return { ...problem, k: of(problem.k), v: of(problem.v), sequences: others };
  };

/** Keys of zeros behind those of the first sequence, which take the place of none. */
const paddedBy =
  (count: number): Change =>
  (problem) => {
    const [first] = problem.sequences!;
    const of = (tensor: Tensor): Tensor => {
      const [heads, keys, dim] = tensor.shape.slice(-3) as [number, number, number];
      const values = decode(tensor);
      const total = keys + count;
      const padded = new Float64Array(heads * total * dim);
      for (let head = 0; head < heads; head++) {
        const own = values.subarray(head * keys * dim, (head + 1) * keys * dim);
        padded.set(own.subarray(0, first.keys * dim), head * total * dim);
        padded.set(own.subarray(first.keys * dim), (head * total + first.keys + count) * dim);
      }
      return encode(padded, tensor.format, [1, heads, total, dim]);
    };
    const sizes = problem.sequences!.map(
      ({ queries, keys }, i) => [queries, keys + (i === 0 ? count : 0)] as const,
    );
    return { ...problem, k: of(problem.k), v: of(problem.v), sequences: sequencesOf(sizes) };
  };

const withSequence = (
  index: number,
  change: (one: Sequence) => Partial<Pick<Sequence, 'firstKey' | 'keys'>>,
): Change =>
  keysFrom((one, i) => {
    const { firstKey, keys } = i === index ? { ...one, ...change(one) } : one;
    return { first: firstKey, count: keys };
  });

const sequences: Readonly<Record<string, HostMistake>> = {
  'five keys of zeros of one padded sequence': mistake(
    'sequences',
    'packed',
    paddedBy(5),
    ['tail-keys-counted'],
    'sequence 0',
  ),
  'the last key of one sequence dropped': mistake(
    'sequences',
    'packed',
    withSequence(0, ({ keys }) => ({ keys: keys - 1 })),
    ['sequence-short'],
    'sequence 0',
  ),
  'one sequence has a key of the next': mistake(
    'sequences',
    'packed',
    withSequence(0, ({ keys }) => ({ keys: keys + 1 })),
    ['sequence-long'],
    'sequence 0',
  ),
  'one sequence reads its keys one late': mistake(
    'sequences',
    'packed',
    withSequence(0, ({ firstKey }) => ({ firstKey: firstKey + 1 })),
    ['sequence-shifted'],
    'sequence 0',
  ),
  'the second sequence reads the keys of the first': mistake(
    'sequences',
    'packed',
    withSequence(1, () => ({ firstKey: 0 })),
    ['sequence-first'],
    'sequence 1',
  ),
  'sequences are not told apart': mistake(
    'sequences',
    'packed',
    ({ sequences: _, ...others }) => others,
    ['sequences-ignored'],
  ),
};

const mapped = (tensor: Tensor, change: (x: number, i: number) => number): Tensor =>
  encode(decode(tensor).map(change), 'fp32', tensor.shape);

const features: Readonly<Record<string, HostMistake>> = {
  'ALiBi aligned to the top left': mistake(
    'alibi',
    'alibi',
    (p) => ({
      ...p,
      alibiSlopes: fp32([2], () => 0),
      bias: fp32([1, 2, 64, 128], (i) => {
        const slope = 0.06 / (Math.floor(i / 8192) + 1);
        return -slope * Math.abs((Math.floor(i / 128) % 64) - (i % 128));
      }),
    }),
    ['alibi-aligned-top-left'],
  ),
  'ALiBi aligned to the top left under a causal mask': mistake(
    'alibi',
    'causal alibi',
    (p) => ({
      ...p,
      alibiSlopes: fp32([2], () => 0),
      bias: fp32([1, 2, 64, 128], (i) => {
        const slope = 0.06 / (Math.floor(i / 8192) + 1);
        return -slope * Math.abs((Math.floor(i / 128) % 64) - (i % 128));
      }),
    }),
    ['alibi-aligned-top-left'],
  ),
  'ALiBi ignored': mistake('alibi', 'alibi', (p) => ({ ...p, alibiSlopes: fp32([2], () => 0) }), [
    'alibi-ignored',
  ]),
  'ALiBi with the slope of the next head': mistake(
    'alibi',
    'alibi',
    (p) => ({ ...p, alibiSlopes: fp32([2], (h) => 0.06 / (2 - h)) }),
    ['alibi-of-other-head'],
  ),
  'ALiBi favours distant keys': mistake(
    'alibi',
    'alibi',
    (p) => ({ ...p, alibiSlopes: mapped(p.alibiSlopes!, (x) => -x) }),
    ['alibi-sign'],
  ),
  'bias ignored': mistake('bias', 'bias', (p) => ({ ...p, bias: mapped(p.bias!, () => 0) }), [
    'bias-ignored',
  ]),
  'bias twice': mistake('bias', 'bias', (p) => ({ ...p, bias: mapped(p.bias!, (x) => 2 * x) }), [
    'bias-twice',
  ]),
  'bias subtracted': mistake('bias', 'bias', (p) => ({ ...p, bias: mapped(p.bias!, (x) => -x) }), [
    'bias-sign',
  ]),
  'bias without log2 e': mistake(
    'bias',
    'bias',
    (p) => ({ ...p, bias: mapped(p.bias!, (x) => x * Math.LN2) }),
    ['bias-base'],
  ),
  'bias of the next head': mistake(
    'bias',
    'bias',
    (p) => {
      const all = decode(p.bias!);
      return { ...p, bias: mapped(p.bias!, (_, i) => all[(i + 96 * 96) % all.length]) };
    },
    ['bias-of-other-head'],
  ),
  'bias ignored under a softcap': mistake(
    'bias',
    'softcap and bias',
    (p) => ({ ...p, bias: mapped(p.bias!, () => 0) }),
    ['bias-ignored'],
  ),
  'softcap ignored beside a bias': mistake(
    'bias',
    'softcap and bias',
    (p) => ({ ...p, softcap: null }),
    ['softcap-ignored'],
  ),
  'mask ignored': mistake('mask', 'mask', (p) => ({ ...p, mask: truths([1], () => true) }), [
    'mask-ignored',
  ]),
  'mask inverted': mistake(
    'mask',
    'mask',
    ({ mask, ...p }) => ({ ...p, mask: truths([1, 2, 96, 96], (i) => mask!.data[i] === 0) }),
    ['mask-inverted'],
  ),
  'mask of head 0 for both': mistake(
    'mask',
    'mask',
    ({ mask, ...p }) => ({ ...p, mask: truths([96, 96], (i) => mask!.data[i] !== 0) }),
    ['mask-of-other-head'],
    'head 1',
  ),
  'sink left out': mistake(
    'sink',
    'sink',
    (p) => ({ ...p, sink: { ...p.sink!, logits: fp32([2], () => -Infinity) } }),
    ['sink-ignored'],
  ),
  'sink twice': mistake(
    'sink',
    'sink',
    (p) => ({ ...p, sink: { ...p.sink!, logits: mapped(p.sink!.logits, (x) => x + Math.LN2) } }),
    ['sink-twice'],
  ),
  'sink of the next head': mistake(
    'sink',
    'sink',
    (p) => ({ ...p, sink: { ...p.sink!, logits: fp32([2], (h) => 2.5 - h) } }),
    ['sink-of-other-head'],
  ),
  'sink not in the LSE': mistake(
    'sink',
    'sink',
    (p) => ({ ...p, sink: { ...p.sink!, inLse: false } }),
    ['sink-in-lse'],
  ),
  'sink scaled': mistake(
    'sink',
    'sink',
    (p) => ({ ...p, sink: { ...p.sink!, logits: mapped(p.sink!.logits, (x) => x * p.scale) } }),
    ['sink-scaled'],
  ),
  'dropout ignored': mistake(
    'dropout',
    'dropout',
    (p) => ({ ...p, dropout: { kept: truths([1], () => true), probability: 0 } }),
    ['dropout-ignored'],
  ),
  'dropout not rescaled': mistake(
    'dropout',
    'dropout',
    (p) => ({ ...p, dropout: { ...p.dropout!, probability: 0 } }),
    ['dropout-not-rescaled'],
  ),
  'dropout in the row sum': {
    family: 'dropout',
    on: problems.dropout,
    outputs: (problem) => {
      const { dropout, ...others } = problem;
      const { share } = keptWeights(problem, problemShape(problem))!;
      const { out, lse } = run({ ...others, mask: dropout!.kept });
      return {
        out: encode(
          decode(out).map((x) => x / share),
          'bf16',
          out.shape,
        ),
        lse,
      };
    },
    causes: ['dropout-before-row-sum'],
  },
  'dropout in the row sum, which is divided too': mistake(
    'dropout',
    'dropout',
    ({ dropout, ...p }) => ({ ...p, mask: dropout!.kept }),
    ['dropout-before-row-sum'],
  ),
  'documents ignored': mistake('documents', 'documents', ({ segments: _, ...p }) => p, [
    'segments-ignored',
  ]),
  'a document begins one key late': mistake(
    'documents',
    'documents',
    (p) => {
      const { keys, queries } = p.segments!;
      const data = keys.data.map((own, i) => (i === 0 ? own : keys.data[i - 1]));
      return { ...p, segments: { queries, keys: { ...keys, data } } };
    },
    ['segment-boundary'],
  ),
  'prefix ignored': mistake(
    'prefix',
    'prefix',
    ({ prefix: _, ...p }) => p,
    ['prefix-ignored'],
    'queries 0 to 22, 46 of 192 rows',
  ),
  'prefix one key too long': mistake(
    'prefix',
    'prefix',
    (p) => ({ ...p, prefix: p.prefix! + 1 }),
    ['prefix-limit'],
    'queries 0 to 23, 48 of 192 rows',
  ),
  'window ignored': mistake('window', 'window', (p) => ({ ...p, window: null }), [
    'window-ignored',
  ]),
  'window one key too wide to the right': mistake(
    'window',
    'window',
    (p) => ({ ...p, window: { left: 20, right: 11 } }),
    ['window-limit'],
    'queries 0 to 84, 170 of 192 rows',
  ),
};

/** Every mistake by its name. */
export const hostMistakes: Readonly<Record<string, HostMistake>> = {
  ...layouts,
  ...tensors,
  ...heads,
  ...pages,
  ...sequences,
  ...features,
};
