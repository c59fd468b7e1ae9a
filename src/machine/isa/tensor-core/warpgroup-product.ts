import type { PatternArray } from '../../../formats/index.js';
import {
  createTensorCoreTile,
  findTensorCoreArithmetic,
  type OperandFormatName,
  operandFormats,
  tensorCoreProduct,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';

/** Integers that wgmma multiplies; the sum is exact modulo 2^32, or cut to the range of s32. */
type IntegerFormatName = 's8' | 'u8';

/** Formats and N of a wgmma: M is 64, and each warp of the warpgroup has 16 of its rows. */
export interface WarpgroupShape {
  readonly a: OperandFormatName | IntegerFormatName;
  readonly b: OperandFormatName | IntegerFormatName;
  readonly accumulator: 'fp32' | 'fp16' | 's32';
  readonly n: number;
  /** Whether sums of integers stop at the ends of the range of s32. */
  readonly saturates?: boolean;
}

/** Rows of D of one warp. */
export const warpRows = 16;

/** Bytes of a row of A and of a column of B: all shapes have K of 32 bytes. */
export const innerBytes = 32;

/** D = A·B + C of one warp's rows. */
export interface WarpgroupProduct {
  /** [16][K], [n][K] of bit patterns, to be filled. */
  readonly a: PatternArray;
  readonly b: PatternArray;
  /** [16][n]: C before, D after: fp32, s32, or fp16 in the low half. */
  readonly c: Uint32Array;
  readonly multiply: () => void;
}

const arrays = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array } as const;

function isInteger(format: string): format is IntegerFormatName {
  return format === 's8' || format === 'u8';
}

/** Bytes of an element in shared memory: tf32 takes those of fp32. */
export function elementBytes(format: WarpgroupShape['a']): 1 | 2 | 4 {
  if (isInteger(format)) return 1;
  return format === 'tf32' ? 4 : ((Math.max(operandFormats[format].storageBits, 8) / 8) as 1 | 2);
}

function integerProduct({
  a: aFormat,
  b: bFormat,
  n,
  saturates,
}: WarpgroupShape): WarpgroupProduct {
  const [a, b] = [new Uint8Array(warpRows * innerBytes), new Uint8Array(n * innerBytes)];
  const c = new Uint32Array(warpRows * n);
  const [left, right] = [
    aFormat === 's8' ? new Int8Array(a.buffer) : a,
    bFormat === 's8' ? new Int8Array(b.buffer) : b,
  ];
  return {
    a,
    b,
    c,
    multiply: () => {
      for (let row = 0; row < warpRows; row++)
        for (let column = 0; column < n; column++) {
          let sum = c[row * n + column] | 0;
          for (let k = 0; k < innerBytes; k++)
            sum += left[row * innerBytes + k] * right[column * innerBytes + k];
          c[row * n + column] =
            saturates === true ? Math.min(Math.max(sum, -(2 ** 31)), 2 ** 31 - 1) : sum;
        }
    },
  };
}

/**
 * The product of one warp's rows of a wgmma, with the arithmetic of Hopper's wgmma: bit for bit an H200's for the formats that
 * src/hardware/tensor-core lists as captured. Throws a RequestError for formats that it does not have.
 */
function createProduct(shape: WarpgroupShape): WarpgroupProduct {
  const { a: aFormat, b: bFormat, n, accumulator } = shape;
  if (isInteger(aFormat) && isInteger(bFormat)) return integerProduct(shape);
  if (isInteger(aFormat) || isInteger(bFormat) || accumulator === 's32')
    throw new RequestError(`wgmma has no product of ${aFormat} and ${bFormat} in ${accumulator}`);
  const query = { instruction: 'wgmma', architecture: 'sm_90', a: aFormat, b: bFormat } as const;
  const arithmetic = findTensorCoreArithmetic({ ...query, accumulator });
  const inner = innerBytes / elementBytes(aFormat);
  if (accumulator === 'fp32') {
    const tile = createTensorCoreTile(arithmetic, {
      rows: warpRows,
      columns: n,
      inner,
      aFormat,
      bFormat,
    });
    return {
      a: tile.a,
      b: tile.b,
      c: tile.cBits,
      multiply: () => {
        tile.packA();
        tile.packTransposedB();
        tile.multiplyAccumulate();
      },
    };
  }
  const Patterns = arrays[elementBytes(aFormat)];
  const [a, b] = [new Patterns(warpRows * inner), new Patterns(n * inner)];
  const c = new Uint32Array(warpRows * n);
  return {
    a,
    b,
    c,
    multiply: () =>
      c.set(
        tensorCoreProduct(arithmetic, {
          m: warpRows,
          n,
          k: inner,
          a,
          aFormat,
          bTransposed: b,
          bFormat,
          c,
        }),
      ),
  };
}

/** The product of a wgmma by shape, kept with its memory once made; a string says why there is none. */
export type FindWarpgroupProduct = (shape: WarpgroupShape) => WarpgroupProduct | string;

/** Products of wgmma, each made when its shape is first asked for. */
export function createWarpgroupProducts(): FindWarpgroupProduct {
  const products = new Map<string, WarpgroupProduct | string>();
  return (shape) => {
    const key = Object.values(shape).join(' ');
    const known = products.get(key);
    if (known !== undefined) return known;
    let product: WarpgroupProduct | string;
    try {
      product = createProduct(shape);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      product = error.message;
    }
    products.set(key, product);
    return product;
  };
}
