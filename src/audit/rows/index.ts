export { describePlace, placeInBrackets } from './describe-place.js';
export { describeRows } from './describe-rows.js';
export { defaultRows, mostMultiplyAdds, multiplyAddsOf } from './default-rows.js';
export { type FaultOdds } from './fault-odds.js';
export { chooseKeys, keysOfHead, type KeySample, type KeySampleRequest } from './key-sample.js';
export {
  createKeyLocator,
  createRowLocator,
  locateOutputs,
  locateQuantity,
  locatorOf,
  placed,
  type RowLocator,
} from './locate-rows.js';
export {
  axisOf,
  everywhere,
  placeOfKeys,
  placeOfRows,
  rangesOf,
  type Place,
  type PlaceAxis,
  type PlaceRange,
} from './place.js';
export { chooseRows, type RowSample, type RowSampleRequest } from './row-sample.js';
export { drawsOf, drawSome, randomWords } from './random-numbers.js';
export {
  rowsProblem,
  sampledProblem,
  sampledQuantity,
  sampledRowNumbers,
  sampleRows,
  type SampledRows,
} from './sample-rows.js';
export { viewedRows, type ViewedRows } from './viewed-rows.js';
