import { allocateStorage, formats, patternsOf, storageOf, type Tensor } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import type { StoredRows, StoredTensors } from './stored.js';

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
export function joinPages(k: Tensor, v: Tensor): Tensor {
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
export interface StoredHalf {
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
