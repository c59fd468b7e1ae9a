import { RequestError } from '../../request-error.js';
import type { BytePlace } from './byte-store.js';
import { type SwizzleMode, swizzles } from './shared-memory.js';

/** The types of elements that a reduction by TMA can combine. */
export type TensorElementType = 'u32' | 's32' | 'u64' | 's64' | 'f16' | 'bf16' | 'f32' | 'f64';

/** Options of {@link createTensorMap}; dimension 0 is the innermost, whose elements are adjacent. */
export interface TensorMapOptions {
  /** Name of the tensor in errors. */
  readonly name: string;
  /** The tensor's place in global memory, aligned to 16 bytes. */
  readonly place: BytePlace;
  /** The address of its first byte in global memory; left out where its accesses are not followed. */
  readonly address?: number;
  readonly elementBytes: 1 | 2 | 4 | 8;
  /** Element type for reductions; left out where there are none. */
  readonly elementType?: TensorElementType | undefined;
  /** Elements of each dimension, one to five dimensions. */
  readonly dims: readonly number[];
  /** Bytes from one index to the next, of dimension 1 and beyond. */
  readonly strides: readonly number[];
  /** Elements of a box in each dimension. */
  readonly box: readonly number[];
  /**
   * Steps between the elements of a box that are copied, in dimension 1 and beyond, from the box's first
   * element on; default 1. (In dimension 0 all elements are copied, whatever this says.)
   */
  readonly elementStrides?: readonly number[] | undefined;
  readonly swizzle: SwizzleMode;
  /** Value read outside of the tensor: zeros (default), or the NaN that `fma.oob` takes for a zero. */
  readonly fill?: 'zero' | 'nan';
}

/**
 * A tensor map of TMA: a tensor in global memory and the boxes that are copied from it and to it.
 * Elements outside of the tensor are read as zeros, or as NaN, and are not written.
 */
export interface TensorMap extends TensorMapOptions {
  /**
   * Whether the rows of a box are four that the coordinates name, one by one: `.tile::gather4`, `.tile::scatter4`. Coordinates
   * are then the first element of dimension 0 and four indices of dimension 1.
   */
  readonly namesRows: boolean;
  /** Bytes of a box's row, along dimension 0. */
  readonly rowBytes: number;
  /** Elements that are copied of each dimension of a box. */
  readonly counts: readonly number[];
  /** Rows that are copied of a box. */
  readonly boxRows: number;
  /**
   * Bytes of a box: the amount that a copy from global memory adds to a barrier's complete_tx, also
   * if a part of the box lies outside of the tensor (CUTLASS' pipelines expect whole boxes at the
   * tensor's edges).
   */
  readonly boxBytes: number;
}

const most = { dimensions: 5, box: 256, extent: 2 ** 32, stride: 2 ** 40, elementStride: 8 };

/** Throws a RequestError with the problem unless something holds. */
type Require = (holds: boolean, problem: string) => void;

/** Checks the numbers of dimensions, strides and sizes of the box, and the alignment in memory. */
function checkDimensions({ place, dims, strides, box }: TensorMapOptions, require: Require): void {
  const byteOffset = place.store.bytes.byteOffset + place.offset;
  require(dims.length >= 1 &&
    dims.length <= most.dimensions, `${dims.length} dimensions; pass 1 to ${most.dimensions}`);
  require(strides.length === dims.length - 1 &&
    box.length ===
      dims.length, `${dims.length} dimensions with ${strides.length} strides and ${box.length} sizes of a box; pass ${dims.length - 1} and ${dims.length}`);
  require(byteOffset % 16 ===
    0, `memory at byte ${byteOffset} of its buffer; copy it to a multiple of 16`);
}

/** Checks the sizes of tensor and box. */
function checkSizes({ dims, strides, box }: TensorMapOptions, require: Require): void {
  dims.forEach((size, i) =>
    require(isBetween(size, 1, most.extent), `dimension ${i} has ${size} elements; pass 1 to 2^32`),
  );
  strides.forEach((stride, i) =>
    require(stride % 16 === 0 &&
      isBetween(
        stride,
        0,
        most.stride - 1,
      ), `dimension ${i + 1} has a stride of ${stride} bytes; pass a multiple of 16 below 2^40`),
  );
  box.forEach((size, i) =>
    require(isBetween(
      size,
      1,
      most.box,
    ), `the box has ${size} elements in dimension ${i}; pass 1 to ${most.box}`),
  );
}

/** Checks the steps between elements, and the rows of a box, which swizzling permutes. */
function checkRows(
  { dims, swizzle }: TensorMapOptions,
  elementStrides: readonly number[],
  rowBytes: number,
  require: Require,
): void {
  require(elementStrides.length ===
    dims.length, `${elementStrides.length} strides of elements; pass ${dims.length}`);
  elementStrides.forEach((stride, i) =>
    require(isBetween(
      stride,
      1,
      most.elementStride,
    ), `a stride of ${stride} elements in dimension ${i}; pass 1 to ${most.elementStride}`),
  );
  require(rowBytes % 16 === 0, `rows of a box have ${rowBytes} bytes; pass a multiple of 16`);
  const { spanBytes } = swizzles[swizzle];
  require(swizzle === 'none' ||
    rowBytes <=
      spanBytes, `rows of a box have ${rowBytes} bytes, more than the ${spanBytes} that ${swizzle} swizzling permutes; split the box`);
  require(swizzle === 'none' ||
    rowBytes ===
      spanBytes, `rows of a box have ${rowBytes} bytes, fewer than the ${spanBytes} that ${swizzle} swizzling permutes; take a narrower swizzling`);
}

/** Checks that the tensor is within its memory. */
function checkExtent(
  { place, elementBytes, dims, strides }: TensorMapOptions,
  require: Require,
): void {
  const byteLength = place.store.bytes.length - place.offset;
  const tensorBytes = strides.reduce(
    (sum, stride, i) => sum + (dims[i + 1] - 1) * stride,
    dims[0] * elementBytes,
  );
  require(tensorBytes <=
    byteLength, `its last element ends at byte ${tensorBytes} of ${byteLength}; pass the whole tensor`);
}

/**
 * A tensor map. Source of the rules: CUDA driver API, cuTensorMapEncodeTiled, without interleaving. Throws a RequestError for options that they forbid (memory
 * or strides that are no multiples of 16 bytes, boxes of more than 256 elements in a dimension, rows of a box that are no multiple of 16 bytes or longer than
 * the swizzling's span), for rows shorter than the span, whose place in shared memory is not documented, and for a tensor that is larger than its memory.
 */
export function createTensorMap(options: TensorMapOptions): TensorMap {
  const { name, elementBytes, dims, box } = options;
  const elementStrides = options.elementStrides ?? dims.map(() => 1);
  const rowBytes = box[0] * elementBytes;
  const require: Require = (holds, problem) => {
    if (!holds) throw new RequestError(`tensor map of ${name}: ${problem}`);
  };
  checkDimensions(options, require);
  checkSizes(options, require);
  checkRows(options, elementStrides, rowBytes, require);
  checkExtent(options, require);
  const counts = box.map((size, i) => (i === 0 ? size : Math.ceil(size / elementStrides[i])));
  const boxRows = counts.slice(1).reduce((product, size) => product * size, 1);
  return {
    ...options,
    namesRows: false,
    rowBytes,
    counts,
    boxRows,
    boxBytes: rowBytes * boxRows,
  };
}

export { outOfBoundsNan } from '../../isa/index.js';

/** Rows of a copy by `.tile::gather4` or `.tile::scatter4`. */
export const namedRows = 4;

/**
 * The map for copies of four rows that are named one by one. Source: PTX ISA 9.2, ".tile::scatter4 and .tile::gather4 modes" (section
 * 5.5.3.4).
 *
 * @returns the error, for a message, where the tensor has no two dimensions or the box more than one row
 */
export function mapOfNamedRows(map: TensorMap): TensorMap | string {
  const { dims, box, rowBytes, name } = map;
  if (dims.length !== 2 || box[1] !== 1)
    return `the tensor map of ${name} has ${dims.length} dimensions and boxes of ${box.join(' × ')}; a gather of four rows needs 2 dimensions and boxes of one row`;
  return {
    ...map,
    namesRows: true,
    counts: [map.counts[0], namedRows],
    boxRows: namedRows,
    boxBytes: namedRows * rowBytes,
  };
}

function isBetween(value: number, first: number, last: number): boolean {
  return Number.isInteger(value) && value >= first && value <= last;
}
