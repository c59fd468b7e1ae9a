export { powerOfTwo } from './binary64.js';
export {
  formats,
  plainFormats,
  smallestNormal,
  smallestSubnormal,
  unitRoundoff,
  type Bits,
  type FormatName,
  type NumberFormat,
} from './format.js';
export {
  round,
  type OverflowMode,
  type RoundingMode,
  type RoundingOptions,
  nextDown,
  nextUp,
  ulp,
} from './round.js';
export { decode } from './bit-patterns.js';
export { encode } from './bit-patterns.js';
export { classify, type Classification, type NumberClass } from './bit-patterns.js';
export { decodeToFloat32, decodeToFloat64 } from './decode-array.js';
export { convertFloat32Bits, encodeFromFloat32, encodeFromFloat64 } from './encode-array.js';
export {
  decodeFinite,
  decodeMeasured,
  decodeTensor,
  isBeyondFloat32,
  multiplyByScales,
  scalesOfRows,
  firstColumns,
  sliceRows,
  smallestNormalOf,
  tensorPrecision,
  tensorScales,
} from './scales.js';
export type { RowMeasures } from './short-decoder.js';
export type { ShortFormatName } from './word-rounding.js';
export {
  allocateStorage,
  bytesInMemory,
  patternsOf,
  storageOf,
  type IntegerFormatName,
  type PatternArray,
  type ScaleFactors,
  type ScaleName,
  type StorageArrays,
  type Tensor,
  type TensorData,
  type TensorScales,
} from './tensor.js';
