import type { BulkReduction } from '../../isa/index.js';
import type { StrongAccess } from '../../ordering/index.js';
import { atomicBits, evaluateAtomic } from './atomic-operations.js';

/** The ordering of each element of a bulk reduction. Source: PTX ISA, `cp.reduce.async.bulk`. */
export const elementReductions: StrongAccess = { order: 'relaxed', scope: 'gpu', isAtomic: true };

/** Integer views of elements of `bits` bits. */
function elementsOf(bytes: Uint8Array, bits: number): Uint16Array | Uint32Array | BigUint64Array {
  const { buffer, byteOffset, byteLength } = bytes;
  if (bits === 16) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  if (bits === 32) return new Uint32Array(buffer, byteOffset, byteLength / 4);
  return new BigUint64Array(buffer, byteOffset, byteLength / 8);
}

/** Combines each element of the destination with that of the source; both are aligned to the elements. */
export function reduceElements(
  { operation, type }: BulkReduction,
  target: Uint8Array,
  source: Uint8Array,
  isShared: boolean,
): void {
  const evaluate = evaluateAtomic(operation, type, isShared)!;
  const bits = atomicBits[type];
  const from = elementsOf(source, bits);
  const into = elementsOf(target, bits);
  for (let i = 0; i < from.length; i++) {
    const value = evaluate(BigInt(into[i]), BigInt(from[i]), 0n);
    into[i] = into instanceof BigUint64Array ? value : Number(value);
  }
}
