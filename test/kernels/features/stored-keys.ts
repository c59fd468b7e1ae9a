import { decodeTensor, decodeToFloat64, formats } from '../../../src/formats/index.js';
import {
  problemShape,
  storedAt,
  storedOf,
  type IntegerTensor,
  type Problem,
  type RowPlace,
  type StoredTensor,
  type Tensor,
} from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';

/** Where a kernel reads keys and values. */
export interface KeySource {
  /** Decoded; a row begins where `at` says, and has the qk or v dimension of elements. */
  readonly k: Float64Array;
  readonly v: Float64Array;
  readonly kAt: (kvHead: number, row: number) => number;
  readonly vAt: (kvHead: number, row: number) => number;
  /**
   * The row that key `key` of a row's sequence is read from, beyond the sequence's last key too: the slots behind it,
   * up to the end of the memory, −1 from there on.
   */
  readonly rowOf: (place: Pick<RowPlace, 'sequence' | 'firstKey' | 'keys'>, key: number) => number;
}

/** A way to find the slot of a key in pages: how a kernel reads its table. */
export type PageLaw = (key: number, pageSize: number) => { readonly page: number; slot: number };

/** Key after key, page after page. */
export const pageOf: PageLaw = (key, pageSize) => ({
  page: Math.floor(key / pageSize),
  slot: key % pageSize,
});

/** Keys and values as the problem has them, one sequence behind the other. */
export function canonicalKeys(problem: Problem): KeySource {
  const { keys, qkDim, vDim } = problemShape(problem);
  return {
    k: decodeTensor(problem.k),
    v: decodeTensor(problem.v),
    kAt: (kvHead, row) => (kvHead * keys + row) * qkDim,
    vAt: (kvHead, row) => (kvHead * keys + row) * vDim,
    rowOf: ({ firstKey }, key) => (firstKey + key < keys ? firstKey + key : -1),
  };
}

function integersOf(tensor: StoredTensor | undefined, name: string): IntegerTensor {
  if (tensor === undefined || 'format' in tensor || !(tensor.data instanceof Int32Array))
    throw new RequestError(`the stored problem has no ${name}`);
  return { shape: tensor.shape, data: tensor.data };
}

function decoded(tensor: StoredTensor | undefined): Float64Array {
  if (tensor === undefined || !('format' in tensor)) throw new RequestError('k or v is not stored');
  const { data, format } = tensor as Tensor;
  return decodeToFloat64(data, formats[format]);
}

/**
 * Keys and values as the problem was posed, found as a kernel finds them: by `cu_seqlens_k`, `leftpad_k` or
 * `block_table`; as the problem has them where it is not kept how it was posed.
 * @param pages how a table of pages is read
 * @throws RequestError for factors of k or v, which this kernel does not read from memory
 */
export function storedKeys(problem: Problem, pages: PageLaw = pageOf): KeySource {
  const stored = storedOf(problem);
  if (stored === null || stored.tensors === null) return canonicalKeys(problem);
  if (problem.k.scales !== undefined || problem.v.scales !== undefined)
    throw new RequestError('the feature kernel reads no factors of stored keys');
  const { kvHeads, qkDim, vDim } = problemShape(problem);
  const { keys, tensors } = stored;
  const { form, groups, slotsPerGroup } = keys;
  const [kSlot, vSlot] = [qkDim, vDim].map((dim) => storedAt(keys, kvHeads, dim));
  const within = (slot: number): number => (slot >= 0 && slot < groups * slotsPerGroup ? slot : -1);
  const rowOf = (): KeySource['rowOf'] => {
    if (form === 'packed') {
      const { data } = integersOf(tensors.cu_seqlens_k, 'cu_seqlens_k');
      return ({ sequence }, key) => within(data[sequence] + key);
    }
    if (form === 'padded') {
      const left = 'leftpad_k' in tensors ? integersOf(tensors.leftpad_k, 'leftpad_k').data : null;
      return ({ sequence }, key) =>
        within(sequence * slotsPerGroup + (left === null ? 0 : left[sequence]) + key);
    }
    const { data, shape } = integersOf(tensors.block_table, 'block_table');
    const columns = shape[1];
    return ({ sequence }, key) => {
      const { page, slot } = pages(key, slotsPerGroup);
      if (page >= columns) return -1;
      const number = data[sequence * columns + page];
      return number < 0 ? -1 : within(number * slotsPerGroup + slot);
    };
  };
  return {
    k: decoded(tensors.k),
    v: decoded(tensors.v),
    kAt: (kvHead, row) => kSlot(row, kvHead),
    vAt: (kvHead, row) => vSlot(row, kvHead),
    rowOf: rowOf(),
  };
}
