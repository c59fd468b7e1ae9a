export { createConversionArray, packConversion } from './array.js';
export type { Conversion, ConversionFormat, ConversionRule } from './conversion.js';
export { conversions } from './conversions.js';
export type {
  ConversionName,
  PackedConversionName,
  PairConversionName,
  SingleConversionName,
} from './conversions.js';
export { convertPacked, convertPair } from './packing.js';
