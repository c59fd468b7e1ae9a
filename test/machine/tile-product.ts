import { findTensorCoreArithmetic, tensorCoreProduct } from '../../src/hardware/index.js';
import {
  byteStoreOf,
  createTensorMap,
  type Fragment,
  type Instruction,
  type MatrixDescriptor,
  tensorAddress,
  type TensorMap,
} from '../../src/machine/index.js';
import { fillPatterns, wordSource } from '../hardware/tensor-core/random-patterns.js';

/** The smallest tcgen05.mma of one CTA on 16-bit operands. */
export const tile = { m: 64, n: 8, k: 16 };
const elementBytes = 2;
const rowBytes = tile.k * elementBytes;
/** Bytes of A's and B's box. */
export const boxBytes = { a: tile.m * rowBytes, b: tile.n * rowBytes };

/** Finite bf16 patterns of moderate size. */
export function randomPatterns(count: number, seed: number): Uint16Array<ArrayBuffer> {
  const patterns = new Uint16Array(count);
  fillPatterns('bf16', patterns, { band: 8 }, 20, wordSource(seed));
  // Exponents around that of 1.
  return patterns.map((pattern) => (pattern & 0x83ff) | 0x3c00);
}

/** A matrix [rows][k] in global memory, with boxes of one instruction's k. */
export function matrixMap(
  name: string,
  patterns: Uint16Array<ArrayBuffer>,
  k: number,
  boxRows: number,
): TensorMap {
  return createTensorMap({
    name,
    place: { store: byteStoreOf(patterns), offset: 0 },
    elementBytes,
    swizzle: '32B',
    dims: [k, patterns.length / k],
    strides: [k * elementBytes],
    box: [tile.k, boxRows],
  });
}

/** cp.async.bulk.tensor of the box at this k and row. */
export function loadTile(
  map: TensorMap,
  [k, row]: readonly [number, number],
  destination: number,
  barrier: number,
): Instruction {
  return {
    op: 'cp.async.bulk.tensor.shared.global',
    map,
    coordinates: [k, row],
    destination,
    barrier,
    name: map.name,
    site: `${map.name}: loaded`,
  };
}

function descriptor(address: number): MatrixDescriptor {
  const [leadingByteOffset, strideByteOffset] = [16, 8 * rowBytes];
  return { address, leadingByteOffset, strideByteOffset, swizzle: '32B', major: 'k' };
}

/** tcgen05.mma of the boxes at these addresses into D. */
export function multiply(
  { a, b, d }: { readonly a: number; readonly b: number; readonly d: number },
  accumulate: boolean,
  { n = tile.n, site = 'D: multiplied', aInTensorMemory = false } = {},
): Instruction {
  return {
    op: 'tcgen05.mma',
    group: 1,
    a: 'bf16',
    b: 'bf16',
    shape: { ...tile, n },
    d,
    accumulate,
    aOperand: aInTensorMemory
      ? { space: 'tensor', address: a }
      : { space: 'shared', descriptor: descriptor(a) },
    bOperand: descriptor(b),
    names: { a: 'A', b: 'B', d: 'D' },
    site,
  };
}

/** tcgen05.mma of a pair of CTAs: 64 rows of A and n / 2 of B lie in each. */
export function multiplyInPair(
  { a, b, d }: { readonly a: number; readonly b: number; readonly d: number },
  accumulate: boolean,
): Instruction {
  return {
    op: 'tcgen05.mma',
    group: 2,
    a: 'bf16',
    b: 'bf16',
    d,
    accumulate,
    shape: { m: 2 * tile.m, n: 2 * tile.n, k: tile.k },
    aOperand: { space: 'shared', descriptor: descriptor(a) },
    bOperand: descriptor(b),
    names: { a: 'A', b: 'B', d: 'D' },
    site: 'D: multiplied',
  };
}

/** tcgen05.commit to a barrier of these CTAs. */
export function commitTo(barrier: number, site = 'commits', ctas: readonly number[] = [0]) {
  const group = ctas.length === 2 ? 2 : 1;
  return { op: 'tcgen05.commit', group, barrier, ctas, site } as const satisfies Instruction;
}

/** Registers of each lane that hold half a row of D. */
export const halfRow = tile.n / 2;

/**
 * tcgen05.ld or tcgen05.st of a warp's 16 rows of D: thread t < 16 has the left half of row t, thread
 * 16 + t the right half.
 */
export function moveRows(
  op: 'tcgen05.ld' | 'tcgen05.st',
  warp: number,
  column: number,
  fragment: Fragment,
  site: string = op,
): Instruction {
  const address = tensorAddress(32 * (warp % 4), column);
  const transfer = { shape: '16x32bx2', repeat: halfRow } as const;
  return { op, transfer, address, fragment, name: 'D', site };
}

/** tcgen05.alloc of so many columns whose address goes to this byte. */
export function allocate(columns: number, destination: number): Instruction {
  return { op: 'tcgen05.alloc', group: 1, columns, destination, site: 'allocates' };
}

/** tcgen05.dealloc. */
export function deallocate(columns: number, column = 0): Instruction {
  return { op: 'tcgen05.dealloc', group: 1, address: column, columns, site: 'frees' };
}

/** A · Bᵀ with the bits of tcgen05.mma, [m][n] fp32, k in pieces of one instruction. */
export function productOf(
  a: Uint16Array,
  bTransposed: Uint16Array,
  { m, n, k }: { readonly m: number; readonly n: number; readonly k: number },
): Uint32Array {
  const formats = { a: 'bf16', b: 'bf16' } as const;
  const arithmetic = findTensorCoreArithmetic({
    instruction: 'tcgen05.mma',
    architecture: 'sm_100',
    ...formats,
  });
  return tensorCoreProduct(arithmetic, {
    m,
    n,
    k,
    a,
    aFormat: 'bf16',
    bTransposed,
    bFormat: 'bf16',
    c: new Uint32Array(m * n),
  });
}
