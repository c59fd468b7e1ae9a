import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  patternsOf,
  storageOf,
  type Tensor,
} from '../../src/formats/index.js';
import {
  broadcastStrides,
  problemShape,
  storedOf,
  type IntegerTensor,
  type Problem,
} from '../../src/problem/index.js';
import { asIf, damages, type Damage } from './damage.js';

/** A tensor in fp64 with its elements changed. */
function mapped(tensor: Tensor, change: (x: number, index: number, all: Float64Array) => number) {
  const values = decodeTensor(tensor);
  const data = encodeFromFloat64(
    formats.fp64,
    values.map((x, i) => change(x, i, values)),
  );
  return { format: 'fp64', shape: tensor.shape, data } as const satisfies Tensor;
}

/** A canonical tensor of keys or values whose row `key` is the row `from(key)`, in every head; bits and scales are copied. */
function rowsFrom(tensor: Tensor, from: (key: number) => number): Tensor {
  const [keys, dim] = tensor.shape.slice(-2) as [number, number];
  const words = patternsOf(tensor.data, formats[tensor.format]);
  const perRow = (words.length / Math.max(1, tensor.data.length)) * dim;
  const taken = words.slice();
  for (let row = 0; row < words.length / perRow; row++) {
    const source = row - (row % keys) + from(row % keys);
    taken.set(words.subarray(source * perRow, (source + 1) * perRow), row * perRow);
  }
  return { ...tensor, data: storageOf(formats[tensor.format], taken) };
}

function withKeysFrom(problem: Problem, from: (key: number) => number): Problem {
  return { ...problem, k: rowsFrom(problem.k, from), v: rowsFrom(problem.v, from) };
}

/** Integers of which each is that of the place before. */
function oneLater({ shape, data }: IntegerTensor): IntegerTensor {
  return { shape, data: data.map((own, i) => (i === 0 ? own : data[i - 1])) };
}

function without(problem: Problem, name: keyof Problem): Problem | null {
  if (problem[name] === undefined) return null;
  return Object.fromEntries(
    Object.entries(problem).filter(([key]) => key !== name),
  ) as unknown as Problem;
}

/** The page of each key of a paged problem; null for any other. */
function pageOfKey(problem: Problem): ((key: number) => number) | null {
  const stored = storedOf(problem);
  if (stored?.keys.form !== 'paged') return null;
  const { slots, slotsPerGroup } = stored.keys;
  return (key) => Math.floor(slots[key] / slotsPerGroup);
}

/** What one wrong page of the first sequence with two does: its first page is the one behind. */
function wrongPage(problem: Problem): Problem | null {
  const pageOf = pageOfKey(problem);
  if (pageOf === null) return null;
  const size = storedOf(problem)!.keys.slotsPerGroup;
  const long = problem.sequences!.find(({ keys }) => keys >= 2 * size);
  if (long === undefined) return null;
  const { firstKey } = long;
  return withKeysFrom(problem, (key) =>
    key >= firstKey && key < firstKey + size ? key + size : key,
  );
}

/** What a split that is left over from another step gives: a quarter of the keys has those of others, in reverse. */
function staleSplit(problem: Problem): Problem {
  const { keys } = problemShape(problem);
  const begin = Math.floor(keys / 2);
  const end = begin + Math.max(2, Math.floor(keys / 4));
  return withKeysFrom(problem, (key) =>
    key >= begin && key < end ? Math.min(begin + end - 1 - key, keys - 1) : key,
  );
}

/** Ways to spoil what a kernel makes of a feature, beside those of `damages`; null where the problem has no such feature. */
export const featureDamages: Readonly<Record<string, Damage>> = {
  'scale × 1.05': asIf((problem) => ({ ...problem, scale: 1.05 * problem.scale })),
  'mask ignored': asIf((problem) => without(problem, 'mask')),
  'mask one key late': asIf((problem) => {
    const { mask } = problem;
    if (mask === undefined) return null;
    const keys = mask.shape.at(-1)!;
    const data = mask.data.map((own, i) => (i % keys === 0 ? own : mask.data[i - 1]));
    return { ...problem, mask: { ...mask, data } };
  }),
  'block mask ignored': asIf((problem) => without(problem, 'blockMask')),
  'window one key too far': asIf((problem) =>
    problem.window === null
      ? null
      : { ...problem, window: { ...problem.window, left: problem.window.left + 1 } },
  ),
  'softcap ignored': asIf((problem) =>
    problem.softcap === null ? null : { ...problem, softcap: null },
  ),
  'bias twice': asIf((problem) =>
    problem.bias === undefined ? null : { ...problem, bias: mapped(problem.bias, (x) => 2 * x) },
  ),
  'bias of the next head': asIf((problem) => {
    const { bias } = problem;
    if (bias === undefined) return null;
    const { head } = broadcastStrides(bias.shape);
    const size = bias.data.length;
    return head === 0
      ? null
      : { ...problem, bias: mapped(bias, (_, i, all) => all[(i + head) % size]) };
  }),
  'ALiBi slope of the next head': asIf((problem) => {
    const { alibiSlopes } = problem;
    if (alibiSlopes === undefined) return null;
    const heads = alibiSlopes.data.length;
    return {
      ...problem,
      alibiSlopes: mapped(alibiSlopes, (_, i, all) => all[(i + 1) % heads]),
    };
  }),
  'document boundary off by one': asIf((problem) =>
    problem.segments === undefined
      ? null
      : { ...problem, segments: { ...problem.segments, keys: oneLater(problem.segments.keys) } },
  ),
  'prefix one key too long': asIf((problem) =>
    problem.prefix === undefined ? null : { ...problem, prefix: problem.prefix + 1 },
  ),
  'sink left out': asIf((problem) => without(problem, 'sink')),
  'dropout ignored': asIf((problem) => without(problem, 'dropout')),
  'wrong page': asIf(wrongPage),
  'sequence shifted by one': asIf((problem) => {
    if (problem.sequences === undefined) return null;
    const { keys } = problemShape(problem);
    return withKeysFrom(problem, (key) => Math.min(key + 1, keys - 1));
  }),
  'stale split': asIf((problem) => staleSplit(problem)),
  'kv head of the next group': asIf((problem) => {
    const { kvHeads, batch, keys } = problemShape(problem);
    if (kvHeads < 2 || batch > 1) return null;
    const next = (tensor: Tensor): Tensor => {
      const words = patternsOf(tensor.data, formats[tensor.format]);
      const size = words.length / kvHeads;
      const turned = words.slice();
      turned.set(words.subarray(size), 0);
      turned.set(words.subarray(0, size), words.length - size);
      return { ...tensor, data: storageOf(formats[tensor.format], turned) };
    };
    return keys === 0 ? null : { ...problem, k: next(problem.k), v: next(problem.v) };
  }),
  'O × 1.01': damages['O × 1.01'],
  'LSE in base 2': damages['LSE in base 2'],
  'LSE + 0.01': damages['LSE + 0.01'],
};

/** Causes that may be named for a damage, besides `unexplained`; a wrong one never. */
export const featureCauses: Readonly<Record<string, readonly string[]>> = {
  'scale × 1.05': ['scale-factor'],
  'mask ignored': ['mask-ignored'],
  'mask one key late': ['mask-shifted'],
  'block mask ignored': ['block-mask-ignored'],
  'window one key too far': ['window-limit'],
  'softcap ignored': ['softcap-ignored'],
  'bias twice': ['bias-twice'],
  'bias of the next head': ['bias-of-other-head'],
  'ALiBi slope of the next head': ['alibi-of-other-head'],
  'document boundary off by one': ['segment-boundary'],
  'prefix one key too long': ['prefix-limit'],
  'sink left out': ['sink-ignored'],
  'dropout ignored': ['dropout-ignored'],
  // The page behind the first is its neighbour among the keys, too.
  'wrong page': ['wrong-page', 'key-tile-stale'],
  'sequence shifted by one': ['sequence-shifted'],
  'stale split': [],
  'kv head of the next group': ['neighbouring-kv-head', 'first-kv-head', 'wrong-kv-head'],
  'O × 1.01': ['output-scale'],
  'LSE in base 2': ['lse-base-2'],
  'LSE + 0.01': ['lse-offset'],
};
