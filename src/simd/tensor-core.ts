import { type Allocator, createAllocator, instantiator } from '../reuse.js';
import { binary, fusedSums } from './tensor-core.generated.js';

/** What the module exports; addresses are of its memory. Its source gives the layouts. */
export interface TensorCoreKernels {
  readonly memory: WebAssembly.Memory;
  packRows(source: number, target: number, rows: number, inner: number, format: number): void;
  packColumns(source: number, target: number, inner: number, columns: number, format: number): void;
  packTransposedColumns(
    source: number,
    target: number,
    inner: number,
    columns: number,
    format: number,
  ): void;
  /** `sums` is from `placeFusedSums`. */
  multiplyAccumulate(
    a: number,
    b: number,
    c: number,
    rows: number,
    inner: number,
    columns: number,
    sums: number,
  ): number;
}

/** The fused sums of a tile. */
interface FusedSums {
  /** 4, 8, 16 or 32. */
  readonly productsPerSum: number;
  /** F, at most 25. */
  readonly alignedFractionBits: number;
  /** Of an fp32 result, at most 23. */
  readonly resultFractionBits: number;
}

/** Places fused sums in memory, for any module with the kernels; the address. */
export function placeFusedSums(
  { struct }: Allocator,
  { productsPerSum, alignedFractionBits, resultFractionBits }: FusedSums,
): number {
  return struct(fusedSums).write({
    productsPerSum,
    fractionBits: alignedFractionBits,
    resultMask: -(2 ** (23 - resultFractionBits)),
  });
}

/** What a tile is made of: C[rows][columns] += A[rows][inner] · B[inner][columns]. */
export interface TileOptions {
  readonly rows: number;
  /** A multiple of 4 and of the products of a sum. */
  readonly inner: number;
  /** A multiple of 8. */
  readonly columns: number;
  /** The formats of A and B: six words each, as told in the source of the module. */
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly sums: FusedSums;
}

/** An array of bit patterns as wide as a format's elements. */
type PatternArray = Uint8Array | Uint16Array | Uint32Array;

/**
 * One tile in WebAssembly memory. The arrays are views of that memory: what is written to them needs
 * no further copy, and what `multiplyAccumulate` makes of `c` is there to be read or left for the next
 * tile of a chain.
 */
export interface TensorCoreTileEngine {
  /** Bit patterns of A, [rows][inner]. */
  readonly a: PatternArray;
  /** Bit patterns of B, [inner][columns], or [columns][inner] where the columns are contiguous. */
  readonly b: PatternArray;
  /** The running accumulator, [rows][columns], fp32; zero at first. */
  readonly c: Float32Array;
  /** The bit patterns of `c`: the same memory. */
  readonly cBits: Uint32Array;
  /** Packs `a` as it is now. */
  readonly packA: () => void;
  /** Packs `b`, read as [inner][columns]. */
  readonly packB: () => void;
  /** Packs `b`, read as [columns][inner]. */
  readonly packTransposedB: () => void;
  /** c += A·B of what was packed last, at first zeros; how many of the fused sums took the exact path. */
  readonly multiplyAccumulate: () => number;
}

const wordBytes = 4;
const patternArrays = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array } as const;

/** The first word of a format. */
function storageBytes(encoding: Int32Array): keyof typeof patternArrays {
  return encoding[0] as keyof typeof patternArrays;
}

const instantiate = instantiator<TensorCoreKernels>(binary, 'tensor cores');

/** Memory for one tile and the kernels on it. The options are not checked. */
export function createTensorCoreTileEngine(options: TileOptions): TensorCoreTileEngine {
  const { rows, inner, columns } = options;
  const kernels = instantiate();
  const { memory } = kernels;
  const packedA = 2 * wordBytes * rows * inner;
  const packedB = 1.5 * wordBytes * inner * columns;
  const tables = 1024;
  const allocator = createAllocator(
    memory,
    rows * inner * storageBytes(options.a) +
      inner * columns * storageBytes(options.b) +
      packedA +
      packedB +
      wordBytes * rows * columns +
      tables,
  );
  const { allocate, place } = allocator;
  const operand = (encoding: Int32Array, elements: number, packedBytes: number) => {
    const source = allocate(elements * storageBytes(encoding));
    const format = place(encoding);
    const view = new patternArrays[storageBytes(encoding)](memory.buffer, source, elements);
    return { source, view, format, packed: allocate(packedBytes) };
  };
  const a = operand(options.a, rows * inner, packedA);
  const b = operand(options.b, inner * columns, packedB);
  const c = allocate(wordBytes * rows * columns);
  const sums = placeFusedSums(allocator, options.sums);
  const packA = () => kernels.packRows(a.source, a.packed, rows, inner, a.format);
  const packB = () => kernels.packColumns(b.source, b.packed, inner, columns, b.format);
  packA();
  packB();
  return {
    a: a.view,
    b: b.view,
    c: new Float32Array(memory.buffer, c, rows * columns),
    cBits: new Uint32Array(memory.buffer, c, rows * columns),
    packA,
    packB,
    packTransposedB: () =>
      kernels.packTransposedColumns(b.source, b.packed, inner, columns, b.format),
    multiplyAccumulate: () =>
      kernels.multiplyAccumulate(a.packed, b.packed, c, rows, inner, columns, sums),
  };
}
