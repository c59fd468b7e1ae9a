import { RequestError } from '../../request-error.js';
import { createTensorCoreTileEngine, type TensorCoreTileEngine } from '../../simd/index.js';
import { checkOperandFormats, type TensorCoreArithmetic } from './arithmetic.js';
import { instructionChain } from './instructions.js';
import { type OperandFormatName, packOperandEncoding } from './operand.js';

/** One tile: operands and accumulator in WebAssembly memory, and its operations. */
export type TensorCoreTile = TensorCoreTileEngine;

/** The tile that {@link createTensorCoreTile} makes. */
export interface TileShape {
  /** M, any positive integer. */
  readonly rows: number;
  /** N, a multiple of 8. */
  readonly columns: number;
  /** K, a multiple of the instructions' K. */
  readonly inner: number;
  readonly aFormat: OperandFormatName;
  readonly bFormat: OperandFormatName;
  /** The K of the instructions; default the longest that there is. */
  readonly instructionLength?: number;
}

/**
 * Memory and kernels for C += A·B on tiles of one shape, with the bits of `tensorCoreProduct` for all
 * operands: sums with infinities, NaNs or exponents outside [−98, 100] are detected and take a slower
 * exact path. Bits of a pattern above the format's storage are ignored, as the padding of formats of 6
 * and 4 bits. The tile keeps its memory for its lifetime; make one and use it for many tiles.
 *
 * Throws a RequestError for a shape or formats that do not fit, and for features that only
 * `tensorCoreProduct` has: fp16 accumulators and Hopper's `mma.sync` of fp8.
 */
export function createTensorCoreTile(
  arithmetic: TensorCoreArithmetic,
  shape: TileShape,
): TensorCoreTile {
  const { rows, columns, inner, aFormat, bFormat, instructionLength } = shape;
  if (arithmetic.accumulator !== 'fp32')
    throw new RequestError(
      `tiles accumulate in fp32, not ${arithmetic.accumulator}; call tensorCoreProduct`,
    );
  if (arithmetic.sequence !== 'chain')
    throw new RequestError(
      `tiles have no ${arithmetic.instruction} of ${arithmetic.operands.join('/')} on ${arithmetic.architecture}, which is no single instruction there; call tensorCoreProduct`,
    );
  checkOperandFormats(arithmetic, aFormat, bFormat);
  const { productsPerSum } = instructionChain(arithmetic, inner, instructionLength);
  if (!(Number.isInteger(rows) && rows > 0 && Number.isInteger(columns / 8) && columns > 0))
    throw new RequestError(
      `a tile of ${rows} × ${columns} cannot be made; pass a positive number of rows and a positive multiple of 8 columns`,
    );
  return createTensorCoreTileEngine({
    rows,
    inner,
    columns,
    a: packOperandEncoding(aFormat),
    b: packOperandEncoding(bFormat),
    sums: { ...arithmetic, productsPerSum },
  });
}
