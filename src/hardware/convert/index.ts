export { createConversionArray, packConversion } from './conversions.js';
export {
  conversions,
  convertPacked,
  convertPair,
  type Conversion,
  type ConversionFormat,
  type ConversionName,
  type ConversionRule,
  type PackedConversionName,
  type PairConversionName,
  type SingleConversionName,
} from './conversions.js';
