import {
  formats,
  patternsOf,
  storageOf,
  type PatternArray,
  type Tensor,
} from '../../formats/index.js';

/** A value whose arrays are in memory that threads share, to be sent without copying them. */
export interface Shared<T> {
  readonly value: unknown;
  /** Never present: the type of the original value. */
  readonly of?: T;
}

/** A tensor by its bit patterns, since not every format's array can be sent. */
interface SharedTensor extends Omit<Tensor, 'data'> {
  readonly patterns: PatternArray;
}

type TypedArray = Exclude<PatternArray, never> | Int32Array | Float32Array | Float64Array;

function shareArray<T extends TypedArray>(array: T): T {
  // A page that is not isolated from others has none: each of its threads gets a copy.
  if (typeof SharedArrayBuffer === 'undefined') return ownArray(array);
  const Class = array.constructor as new (memory: SharedArrayBuffer) => T;
  const shared = new Class(new SharedArrayBuffer(array.byteLength));
  shared.set(array);
  return shared;
}

/** The array, or a copy of a view: sending a view sends its whole buffer. */
function ownArray<T extends TypedArray>(array: T): T {
  return array.byteLength === array.buffer.byteLength ? array : (array.slice() as T);
}

function isTensor(value: object): value is Tensor {
  return 'format' in value && 'shape' in value && 'data' in value;
}

/** Values already visited with their copies, so that identity is kept. */
type Met = Map<object, unknown>;

function mapMembers(value: object, map: (member: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(map);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, map(member)]));
}

function toShared(
  value: unknown,
  ofArray: (array: TypedArray) => TypedArray,
  met: Met = new Map(),
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const known = met.get(value);
  if (known !== undefined) return known;
  const shared = (): unknown => {
    const ofMember = (member: unknown) => toShared(member, ofArray, met);
    if (isTensor(value)) {
      const { data, ...rest } = value;
      const patterns = ofArray(patternsOf(data, formats[rest.format]));
      return { ...(mapMembers(rest, ofMember) as object), patterns };
    }
    if (ArrayBuffer.isView(value)) return ofArray(value as TypedArray);
    return mapMembers(value, ofMember);
  };
  const made = shared();
  met.set(value, made);
  return made;
}

function isSharedTensor(value: object): value is SharedTensor {
  return 'format' in value && 'patterns' in value;
}

function fromShared(value: unknown, met: Met = new Map()): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const known = met.get(value);
  if (known !== undefined) return known;
  const own = (): unknown => {
    const ofMember = (member: unknown) => fromShared(member, met);
    if (!isSharedTensor(value)) return mapMembers(value, ofMember);
    const { patterns, ...rest } = value;
    return {
      ...(mapMembers(rest, ofMember) as object),
      data: storageOf(formats[rest.format], patterns),
    };
  };
  const made = own();
  met.set(value, made);
  return made;
}

/** A value of records, lists, arrays of numbers and tensors, its arrays copied to memory that threads share. */
export function share<T>(value: T): Shared<T> {
  return { value: toShared(value, shareArray) };
}

/** A copy of the value with arrays of its own, to be sent to one thread. */
export function sendable<T>(value: T): Shared<T> {
  return { value: toShared(value, ownArray) };
}

/** The original value of one that was shared or sent; shared arrays are common to all threads. */
export function unshare<T>({ value }: Shared<T>): T {
  return fromShared(value) as T;
}

/** The value with arrays that have memory of their own: sending a view sends its whole buffer. */
export function withoutViews<T>(value: T): T {
  const compact = (member: unknown): unknown => {
    if (typeof member !== 'object' || member === null || member instanceof Map) return member;
    if (!ArrayBuffer.isView(member)) return mapMembers(member, compact);
    return ownArray(member as Float64Array);
  };
  return compact(value) as T;
}
