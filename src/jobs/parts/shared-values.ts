import {
  formats,
  patternsOf,
  storageOf,
  type PatternArray,
  type Tensor,
} from '../../formats/index.js';

/** A value whose arrays lie in memory that threads share: data that a thread may be sent without copying them. */
export interface Shared<T> {
  readonly value: unknown;
  /** Never there: what the value is of. */
  readonly of?: T;
}

/** A tensor by its bit patterns: not every format's array can be sent. */
interface SharedTensor extends Omit<Tensor, 'data'> {
  readonly patterns: PatternArray;
}

type TypedArray = Exclude<PatternArray, never> | Int32Array | Float32Array | Float64Array;

function shareArray<T extends TypedArray>(array: T): T {
  const Class = array.constructor as new (memory: SharedArrayBuffer) => T;
  const shared = new Class(new SharedArrayBuffer(array.byteLength));
  shared.set(array);
  return shared;
}

function isTensor(value: object): value is Tensor {
  return 'format' in value && 'shape' in value && 'data' in value;
}

function mapMembers(value: object, map: (member: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(map);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member)]));
}

function toShared(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (isTensor(value)) {
    const { data, ...rest } = value;
    const patterns = shareArray(patternsOf(data, formats[rest.format]));
    return { ...(mapMembers(rest, toShared) as object), patterns };
  }
  if (ArrayBuffer.isView(value)) return shareArray(value as TypedArray);
  return mapMembers(value, toShared);
}

function isSharedTensor(value: object): value is SharedTensor {
  return 'format' in value && 'patterns' in value;
}

function fromShared(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  if (isSharedTensor(value)) {
    const { patterns, ...rest } = value;
    return {
      ...(mapMembers(rest, fromShared) as object),
      data: storageOf(formats[rest.format], patterns),
    };
  }
  return mapMembers(value, fromShared);
}

/** A value of records, lists, arrays of numbers and tensors, its arrays copied to memory that threads share. */
export function share<T>(value: T): Shared<T> {
  return { value: toShared(value) };
}

/** What was shared: its arrays are those of all threads. */
export function unshare<T>({ value }: Shared<T>): T {
  return fromShared(value) as T;
}

/** The value with arrays that have memory of their own: a view is sent with all that it is a view of. */
export function withoutViews<T>(value: T): T {
  const compact = (member: unknown): unknown => {
    if (typeof member !== 'object' || member === null || member instanceof Map) return member;
    if (!ArrayBuffer.isView(member)) return mapMembers(member, compact);
    const array = member as Float64Array;
    return array.byteLength === array.buffer.byteLength ? array : array.slice();
  };
  return compact(value) as T;
}
