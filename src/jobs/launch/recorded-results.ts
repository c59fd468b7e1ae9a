import type { LaunchTensor } from '../../ptx/launch/index.js';

/** The comparison of an output with a recorded one. */
export interface RecordedComparison {
  /** The name of the recorded tensor. */
  readonly name: string;
  readonly elements: number;
  /** Number of elements with other bits. */
  readonly differing: number;
  /** The index of the first one, the innermost last; null if none differs. */
  readonly first: readonly number[] | null;
}

/** Number of elements whose bytes differ, and the first of them. */
function compareElements(a: Uint8Array, b: Uint8Array, size: number) {
  let [differing, first] = [0, -1];
  for (let element = 0; element * size < a.length; element++) {
    const start = element * size;
    let isSame = true;
    for (let byte = start; byte < start + size && isSame; byte++) isSame = a[byte] === b[byte];
    if (isSame) continue;
    if (differing++ === 0) first = element;
  }
  return { differing, first };
}

/** The index of an element of a tensor. */
function indexOf(element: number, shape: readonly number[]): readonly number[] {
  const index: number[] = [];
  for (let axis = shape.length - 1, rest = element; axis >= 0; axis--) {
    index.unshift(rest % shape[axis]);
    rest = Math.floor(rest / shape[axis]);
  }
  return index;
}

/**
 * Compares an output with the result of a GPU, if one is recorded: `T.fused`, and if that differs, `T.unfused` for a
 * run without contraction. Null if nothing with as many bytes is recorded.
 */
export function compareWithRecorded(
  { name, shape, elementBits }: LaunchTensor,
  bytes: Uint8Array,
  tensors: ReadonlyMap<string, LaunchTensor>,
  isContracted: boolean,
): RecordedComparison | null {
  const fused = tensors.get(`${name}.fused`);
  const recorded = isContracted ? fused : (tensors.get(`${name}.unfused`) ?? fused);
  if (recorded === undefined || recorded.bytes.byteLength !== bytes.byteLength) return null;
  const size = elementBits / 8;
  const { differing, first } = compareElements(bytes, recorded.bytes, size);
  return {
    name: recorded.name,
    elements: bytes.byteLength / size,
    differing,
    first: differing === 0 ? null : indexOf(first, shape),
  };
}
