import { decode, encode, formats } from '../../../formats/index.js';
import type { AtomicOperation, AtomicType, BulkReduction, Meaning } from '../../isa/index.js';
import { type BytePlace, copyOfBytes } from '../../memory/index.js';
import type { StrongAccess } from '../../ordering/index.js';
import type { ValueTracer } from '../../value-tracer.js';

/** The value to store, from the old value and the operands; bits as integers that are not negative. */
export type EvaluateAtomic = (old: bigint, operand: bigint, compared: bigint) => bigint;

/** Bits of an element of each type. */
export const atomicBits: Readonly<Record<AtomicType, 16 | 32 | 64 | 128>> = {
  b16: 16,
  f16: 16,
  bf16: 16,
  b32: 32,
  u32: 32,
  s32: 32,
  f32: 32,
  f16x2: 32,
  bf16x2: 32,
  b64: 64,
  u64: 64,
  s64: 64,
  f64: 64,
  b128: 128,
};

/** The types that each operation has, of `atom` and `red`, vectors included. Source: PTX ISA, `atom`, `red`. */
const typesOf: Readonly<Record<AtomicOperation, readonly AtomicType[]>> = {
  and: ['b32', 'b64'],
  or: ['b32', 'b64'],
  xor: ['b32', 'b64'],
  exch: ['b32', 'b64', 'b128'],
  cas: ['b16', 'b32', 'b64', 'b128'],
  add: ['u32', 's32', 'u64', 's64', 'f32', 'f64', 'f16', 'f16x2', 'bf16', 'bf16x2'],
  inc: ['u32'],
  dec: ['u32'],
  min: ['u32', 's32', 'u64', 's64', 'f16', 'f16x2', 'bf16', 'bf16x2'],
  max: ['u32', 's32', 'u64', 's64', 'f16', 'f16x2', 'bf16', 'bf16x2'],
};

const smallestNormalFloat32 = 2 ** -126;

/** A subnormal number of fp32 becomes a zero of its sign. */
function flush(value: number): number {
  return Math.abs(value) < smallestNormalFloat32
    ? value < 0 || Object.is(value, -0)
      ? -0
      : 0
    : value;
}

/** fp32 as global memory adds it, with subnormals flushed; shared memory keeps them. */
function addFloat32(old: bigint, operand: bigint, flushes: boolean): bigint {
  const [a, b] = [decode(formats.fp32, Number(old)), decode(formats.fp32, Number(operand))];
  if (!flushes) return BigInt(encode(formats.fp32, a + b));
  const sum = decode(formats.fp32, encode(formats.fp32, flush(a) + flush(b)));
  return BigInt(encode(formats.fp32, flush(sum)));
}

function addFloat64(old: bigint, operand: bigint): bigint {
  return encode(formats.fp64, decode(formats.fp64, old) + decode(formats.fp64, operand));
}

/** The smaller or larger of two numbers; of a NaN and a number the number, and −0 is below 0. */
function extreme(a: number, b: number, isLeast: boolean): number {
  if (Number.isNaN(a)) return b;
  if (Number.isNaN(b)) return a;
  return isLeast ? Math.min(a, b) : Math.max(a, b);
}

type Half = 'f16' | 'bf16';
const halfFormats = { f16: formats.fp16, bf16: formats.bf16 } as const;

function evaluateHalf(format: Half, operation: AtomicOperation): EvaluateAtomic | null {
  const of = halfFormats[format];
  const combine =
    operation === 'add'
      ? (a: number, b: number) => a + b
      : operation === 'min' || operation === 'max'
        ? (a: number, b: number) => extreme(a, b, operation === 'min')
        : null;
  if (combine === null) return null;
  return (old, operand) =>
    BigInt(encode(of, combine(decode(of, Number(old)), decode(of, Number(operand)))));
}

function inHalves(evaluate: EvaluateAtomic | null): EvaluateAtomic | null {
  if (evaluate === null) return null;
  return (old, operand, compared) =>
    evaluate(old & 0xffffn, operand & 0xffffn, compared & 0xffffn) |
    (evaluate(old >> 16n, operand >> 16n, compared >> 16n) << 16n);
}

function evaluateInteger(
  operation: AtomicOperation,
  bits: number,
  isSigned: boolean,
): EvaluateAtomic | null {
  const value = isSigned
    ? (pattern: bigint) => BigInt.asIntN(bits, pattern)
    : (pattern: bigint) => pattern;
  switch (operation) {
    case 'and':
      return (old, operand) => old & operand;
    case 'or':
      return (old, operand) => old | operand;
    case 'xor':
      return (old, operand) => old ^ operand;
    case 'exch':
      return (_old, operand) => operand;
    case 'cas':
      return (old, operand, compared) => (old === compared ? operand : old);
    case 'add':
      return (old, operand) => BigInt.asUintN(bits, old + operand);
    case 'inc':
      return (old, operand) => (old >= operand ? 0n : old + 1n);
    case 'dec':
      return (old, operand) => (old === 0n || old > operand ? operand : old - 1n);
    case 'min':
      return (old, operand) => (value(operand) < value(old) ? operand : old);
    case 'max':
      return (old, operand) => (value(operand) > value(old) ? operand : old);
  }
}

/** Types whose sums round; others are integers, whose sums may be a trick on the bits of a number. */
const floatingPoint: ReadonlySet<AtomicType> = new Set<AtomicType>([
  ...(['f16', 'f16x2', 'bf16', 'bf16x2', 'f32', 'f64'] as const),
]);

/** What an atomic operation leaves in memory stands for, by what lay there and by its operands. */
export function meaningOfAtomic(operation: AtomicOperation, type: AtomicType): Meaning {
  switch (operation) {
    case 'exch':
      return 'moves';
    case 'cas':
    case 'min':
    case 'max':
      return 'chooses';
    case 'add':
      return floatingPoint.has(type) ? 'is' : 'confirmed';
    case 'inc':
    case 'dec':
    case 'and':
    case 'or':
    case 'xor':
      return 'confirmed';
  }
}

/** What a copy leaves stands for, or a reduction where it is one. */
export function meaningOfCopy({
  reduction,
}: {
  readonly reduction: BulkReduction | null;
}): Meaning {
  return reduction === null ? 'moves' : meaningOfAtomic(reduction.operation, reduction.type);
}

/** Whether PTX has an operation for a type. */
export function hasAtomic(operation: AtomicOperation, type: AtomicType): boolean {
  return typesOf[operation].includes(type);
}

/**
 * The function that an atomic operation computes on an element; null where PTX lacks it for the type.
 *
 * Source: PTX ISA, `atom`: additions round to nearest; those of f32 flush subnormals in global memory and keep them
 * in shared memory; those of f16 and bf16 are `.noftz`.
 *
 * @param isShared whether the element lies in shared memory
 */
export function evaluateAtomic(
  operation: AtomicOperation,
  type: AtomicType,
  isShared: boolean,
): EvaluateAtomic | null {
  if (type === 'f32')
    return operation === 'add' ? (old, operand) => addFloat32(old, operand, !isShared) : null;
  if (type === 'f64') return operation === 'add' ? addFloat64 : null;
  if (type === 'f16' || type === 'bf16') return evaluateHalf(type, operation);
  if (type === 'f16x2') return inHalves(evaluateHalf('f16', operation));
  if (type === 'bf16x2') return inHalves(evaluateHalf('bf16', operation));
  return evaluateInteger(operation, atomicBits[type], type === 's32' || type === 's64');
}

/** The ordering of each element of a bulk reduction. Source: PTX ISA, `cp.reduce.async.bulk`. */
export const elementReductions: StrongAccess = { order: 'relaxed', scope: 'gpu', isAtomic: true };

/** Integer views of elements of `bits` bits. */
function elementsOf(bytes: Uint8Array, bits: number): Uint16Array | Uint32Array | BigUint64Array {
  const { buffer, byteOffset, byteLength } = bytes;
  if (bits === 16) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  if (bits === 32) return new Uint32Array(buffer, byteOffset, byteLength / 4);
  return new BigUint64Array(buffer, byteOffset, byteLength / 8);
}

/** Who is told of a reduction, and its place in the program; null where nobody is. */
export type TraceReduction = { readonly tracer: ValueTracer; readonly site: string } | null;

/** Combines each element of `bytes` bytes at the destination with that of the source; both are aligned to the elements. */
export function reduceElements(
  { operation, type }: BulkReduction,
  target: BytePlace,
  source: BytePlace,
  bytes: number,
  { isShared, trace }: { readonly isShared: boolean; readonly trace: TraceReduction },
): void {
  const evaluate = evaluateAtomic(operation, type, isShared)!;
  const bits = atomicBits[type];
  const old = trace && copyOfBytes(target.store, target.offset, bytes);
  const part = ({ store, offset }: BytePlace) => store.bytes.subarray(offset, offset + bytes);
  const from = elementsOf(part(source), bits);
  const into = elementsOf(part(target), bits);
  for (let i = 0; i < from.length; i++) {
    const value = evaluate(BigInt(into[i]), BigInt(from[i]), 0n);
    into[i] = into instanceof BigUint64Array ? value : Number(value);
  }
  if (trace === null || old === null) return;
  trace.tracer.update({
    mnemonic: `red.${operation}.${type}`,
    site: trace.site,
    operation,
    type,
    old,
    operand: { store: source.store, byte: source.offset },
    compared: null,
    next: { store: target.store, byte: target.offset },
    bytes,
  });
}
