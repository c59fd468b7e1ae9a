export {
  checkCacheWrite,
  factorRules,
  cachePartShape,
  type CachePart,
  type CacheWrite,
  type Division,
  type FactorFloor,
  type FactorRule,
  type PageTable,
  type Prologue,
  type RootMeanSquareNorm,
  type Rotary,
  type Scaling,
} from './cache-write.js';
export {
  codeNames,
  codes,
  usualRounding,
  type Code,
  type CodeName,
  type CodeRounding,
} from './codes.js';
export {
  bitOf,
  checkPlaces,
  codeAt,
  coordinates,
  extentOfField,
  fieldOf,
  rowBitOf,
  tells,
  type Coordinate,
  type Field,
  type FieldPlace,
  type FieldSizes,
  type LayoutLetters,
} from './field.js';
export { factorLayouts, numberLayouts, type FactorLayout, type NumberLayout } from './layouts.js';
