import type { ByteStore } from './byte-store.js';

/** The reduction of a `tcgen05.ld.red`. Source: PTX ISA, "tcgen05.ld" (sm_103a, PTX 9.0). */
export interface ReductionKind {
  readonly operation: 'min' | 'max';
  readonly type: 'u32' | 's32' | 'f32';
  /**
   * For f32: whether it reduces magnitudes (`.abs`), and whether a NaN makes the result NaN (`.NaN`) or is
   * passed over.
   */
  readonly isAbsolute: boolean;
  readonly passesNan: boolean;
}

/** The reduction of each lane's registers, and the register for its result. */
export interface FragmentReduction extends ReductionKind {
  /** A register of 32 lanes. */
  readonly into: ByteStore<ArrayBuffer>;
}

const lanes = 32;
const canonicalNan = 0x7fffffff;

/** The views of a number's bits. */
function numbersOf(words: Uint32Array, type: ReductionKind['type']) {
  const { buffer, byteOffset, length } = words;
  if (type === 'u32') return words;
  return type === 's32'
    ? new Int32Array(buffer, byteOffset, length)
    : new Float32Array(buffer, byteOffset, length);
}

/**
 * Reduces each lane's registers of a loaded fragment ([lane][register]) to one: without rounding or flushing; +0 is
 * above −0; the result is the canonical NaN if all are NaN, or with `.NaN` if any is.
 */
export function reduceFragment({ words }: ByteStore, reduction: FragmentReduction): void {
  const { operation, type, isAbsolute, passesNan } = reduction;
  const into = reduction.into.words;
  const numbers = numbersOf(words, type);
  const results = numbersOf(into, type);
  const perLane = words.length / lanes;
  const extremum = operation === 'min' ? Math.min : Math.max;
  for (let lane = 0; lane < lanes; lane++) {
    let [result, hasNan] = [NaN, false];
    for (let i = lane * perLane; i < (lane + 1) * perLane; i++) {
      const value = isAbsolute ? Math.abs(numbers[i]) : numbers[i];
      hasNan ||= Number.isNaN(value);
      if (!Number.isNaN(value)) result = Number.isNaN(result) ? value : extremum(result, value);
    }
    if (Number.isNaN(result) || (hasNan && passesNan)) into[lane] = canonicalNan;
    else results[lane] = result;
  }
}
