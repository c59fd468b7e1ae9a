export { planeOfValue, valueOfPlanes, valueOfWideTags } from './tags.js';
export {
  decidedValue,
  lostValue,
  noValue,
  TooManyValues,
  Trace,
  type Operation,
  type ProductTrace,
  type ValueOrigin,
} from './trace.js';
export { valueFormat, type ValueFormat } from './value-format.js';
export { addRawWord, floatFields, numberOfRawWord, type FloatFields } from './raw-words.js';
export type { RawWord } from './raw-word.js';
export { Losses, type PlaceCounts } from './losses.js';
export {
  byteSlots,
  placeInSlot,
  RegisterFile,
  valueBytes,
  type LanePlace,
} from './register-file.js';
export type { Limit, RealFunction } from './real-function.js';
