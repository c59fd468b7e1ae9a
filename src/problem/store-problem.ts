import {
  allocateStorage,
  encodeFromFloat64,
  formats,
  patternsOf,
  storageOf,
  type Tensor,
} from '../formats/index.js';
import { RequestError } from '../request-error.js';
import { featureTensors, scoreTensors, spreadToSlots } from './feature-tensors.js';
import { featureNames, type FeatureName, type IntegerTensor, type Sequence } from './features.js';
import { scatterRows } from './gather-rows.js';
import type { Problem } from './problem.js';
import { scaleTensors, storedScales } from './scale-tensors.js';
import { packedRows, placeRows, type Placed } from './stored-forms.js';
import type {
  PaddedForm,
  StoredForm,
  StoredProblem,
  StoredRows,
  StoredTensor,
  StoredTensors,
} from './stored.js';

/** The keys, or the values, of pages that hold both. */
export type CacheHalf = 'k' | 'v';

/** The tensor of stored keys and values together: [pages, 2, …], each page with its keys first, then its values. */
export const cacheName = 'kv_cache';

/**
 * The place of a slot of keys or values in pages that hold both, counted over [pages, 2, slots]. Source:
 * FlashInfer's documentation, "KV-Cache Layout in FlashInfer": `paged_kv_cache[:, 0]` are the keys.
 */
function joinedSlot(slot: number, pageSize: number, half: CacheHalf): number {
  const page = Math.floor(slot / pageSize);
  return slot + (half === 'k' ? page : page + 1) * pageSize;
}

/** The rows of the keys, or of the values, of pages that hold both: as if each half were a page. */
export function halfOfPages(rows: StoredRows, half: CacheHalf): StoredRows {
  const { groups, slotsPerGroup, slots } = rows;
  return {
    ...rows,
    groups: 2 * groups,
    slots: slots.map((slot) => joinedSlot(slot, slotsPerGroup, half)),
  };
}

/**
 * Pages of keys and pages of values, [pages, …] each, as [pages, 2, …]. Bits are copied.
 * @throws RequestError for keys and values of different sizes or formats
 */
function joinPages(k: Tensor, v: Tensor): Tensor {
  if (k.format !== v.format || String(k.shape) !== String(v.shape))
    throw new RequestError(
      `k is ${k.format} [${k.shape.join(', ')}], v ${v.format} [${v.shape.join(', ')}]; one tensor holds both only if they are equal`,
    );
  const format = formats[k.format];
  const [pages, ...rest] = k.shape;
  const data = allocateStorage(format, 2 * k.data.length);
  const target = patternsOf(data, format);
  const width = pages === 0 ? 0 : target.length / (2 * pages);
  [k, v].forEach((tensor, half) => {
    const source = patternsOf(tensor.data, format);
    for (let page = 0; page < pages; page++)
      target.set(source.subarray(page * width, (page + 1) * width), (2 * page + half) * width);
  });
  return { format: k.format, shape: [pages, 2, ...rest], data: storageOf(format, target) };
}

/** Stored keys, or values. */
interface StoredHalf {
  readonly tensor: Tensor;
  /** The place in the tensor of a slot of the keys' rows. */
  readonly slotOf: (slot: number) => number;
}

/** The stored keys, or values, in their tensor: their own, or the one of both. */
export function storedHalf(tensors: StoredTensors, keys: StoredRows, half: CacheHalf): StoredHalf {
  const both = tensors[cacheName] as Tensor | undefined;
  return both === undefined
    ? { tensor: tensors[half] as Tensor, slotOf: (slot) => slot }
    : { tensor: both, slotOf: (slot) => joinedSlot(slot, keys.slotsPerGroup, half) };
}

/** One element of a format: a number rounded to it; finite numbers stay finite. */
function fillerOf({ format }: Tensor, fill: number): Tensor['data'] {
  const overflow = Number.isFinite(fill) ? 'saturate' : 'overflow';
  return encodeFromFloat64(formats[format], Float64Array.of(fill), { overflow });
}

/** The value of an unused element of a tensor over queries and keys: visible, kept, or the fill. */
function scoreFiller(tensor: StoredTensor, fill: number): ArrayLike<number> {
  if (!('format' in tensor)) return [1];
  return patternsOf(fillerOf(tensor, fill), formats[tensor.format]);
}

/**
 * Lists of packed queries, [1, queries, heads, n], for every slot of queries: [slots, heads, n], or [groups, slots, heads, n] where
 * each sequence has as many. Unused slots list nothing.
 */
export function spreadLists(lists: IntegerTensor, rows: StoredRows): IntegerTensor {
  const { form, groups, slotsPerGroup, slots } = rows;
  const [heads, length] = lists.shape.slice(-2);
  const size = heads * length;
  const data = new Int32Array(groups * slotsPerGroup * size).fill(-1);
  slots.forEach((slot, row) =>
    data.set(lists.data.subarray(row * size, (row + 1) * size), slot * size),
  );
  const leading = form === 'packed' ? [slotsPerGroup] : [groups, slotsPerGroup];
  return { shape: [...leading, heads, length], data };
}

function featuresAsPosed(problem: Problem, queries: Placed, keys: Placed, fill: number) {
  const isPadded =
    queries.rows.form === 'padded' || keys.left !== null || keys.rows.form === 'padded';
  const area = { queries: queries.capacity, keys: keys.capacity, left: keys.left };
  return Object.fromEntries(
    Object.entries(featureTensors(problem)).map(([name, tensor]) =>
      name === 'kv_index' || name === 'block_index'
        ? [name, spreadLists(tensor as IntegerTensor, queries.rows)]
        : isPadded && scoreTensors.includes(name)
          ? [name, spreadToSlots(tensor, area, scoreFiller(tensor, fill))]
          : [name, tensor],
    ),
  );
}

function keysAndValues(k: Tensor, v: Tensor, form: StoredForm['keys']): StoredTensors {
  return form.kind === 'paged' && form.joined === true
    ? { [cacheName]: joinPages(k, v) }
    : { k, v };
}

/** A problem that keeps the form in which it was posed. */
export type PosedProblem = Problem & {
  readonly stored: StoredProblem & { readonly tensors: StoredTensors };
};

/**
 * A problem with packed sequences, posed in a form: the same problem, whose `stored` has the tensors to give to a
 * kernel. Unused slots of queries, keys, values and biases hold `fill`, rounded to each format (finite numbers stay
 * finite; a format without infinity has NaN in its place); unused elements of masks are true.
 * @throws RequestError for a problem without sequences, a sample of rows, and a form that does not fit
 */
export function storeProblem(problem: Problem, form: StoredForm, fill = 0): PosedProblem {
  const { sequences, rows } = problem;
  if (sequences === undefined || rows !== undefined)
    throw new RequestError('only whole problems with packed sequences are stored in a form');
  const lengths = (of: (sequence: Sequence) => number) => sequences.map(of);
  const ofQueries = lengths((one) => one.queries);
  const ofKeys = lengths((one) => one.keys);
  const padded = [form.queries, form.keys].filter(({ kind }) => kind === 'padded') as PaddedForm[];
  if (new Set(padded.map(({ headsFirst = true }) => headsFirst)).size > 1)
    throw new RequestError('queries and keys are padded in different layouts; give them the same');
  const queries = placeRows(problem, 'q', ofQueries, form.queries);
  const keys = placeRows(problem, 'k', ofKeys, form.keys);
  const { q, k, v } = problem;
  const stored = {
    queries: queries.rows,
    keys: keys.rows,
    tensors: {
      q: scatterRows(q, queries.rows, fillerOf(q, fill)),
      ...keysAndValues(
        scatterRows(k, keys.rows, fillerOf(k, fill)),
        scatterRows(v, keys.rows, fillerOf(v, fill)),
        form.keys,
      ),
      ...queries.tensors,
      ...keys.tensors,
      ...featuresAsPosed(problem, queries, keys, fill),
      ...storedScales(problem, { q: queries.rows, k: keys.rows, v: keys.rows }),
    },
    form,
    of: problem,
  };
  return { ...problem, stored };
}

const storedMembers = ['q', 'k', 'v', ...(Object.keys(featureNames) as FeatureName[])] as const;

/**
 * The form in which a problem was posed; null if it is not kept, or if the problem was changed since: a copy of it
 * with another tensor is posed anew.
 */
export function storedOf(problem: Problem): StoredProblem | null {
  const { stored } = problem;
  if (stored === undefined) return null;
  return storedMembers.every((name) => name === 'scales' || problem[name] === stored.of[name])
    ? stored
    : null;
}

/** The layout of a problem's rows as it is posed; packed sequences of unknown form are one behind the other. */
export function posedRows(problem: Problem): Pick<StoredProblem, 'queries' | 'keys'> | null {
  if (problem.sequences === undefined) return null;
  const rows = ({ shape }: Tensor) => packedRows(shape.at(-2) ?? 0);
  return storedOf(problem) ?? { queries: rows(problem.q), keys: rows(problem.k) };
}

/**
 * The tensors to give to a kernel, by their names in a problem file: as the problem was posed, else packed one
 * sequence behind the other, else as the problem has them.
 * @throws RequestError for a sample of rows of packed sequences, and where tensors were not kept
 */
export function posedTensors(problem: Problem): StoredTensors {
  const { q, k, v, sequences } = problem;
  if (sequences === undefined)
    return { q, k, v, ...featureTensors(problem), ...scaleTensors(problem).tensors };
  const stored =
    storedOf(problem) ??
    storeProblem(problem, { queries: { kind: 'packed' }, keys: { kind: 'packed' } }).stored;
  if (stored.tensors === null)
    throw new RequestError('the tensors of this problem were not kept as they are stored');
  return stored.tensors;
}
