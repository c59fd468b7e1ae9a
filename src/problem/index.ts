export type { Tensor, TensorData } from '../formats/index.js';
export type { LseShift, Problem, ProblemShape, Window } from './problem.js';
export {
  featureNames,
  problemFeatures,
  type BlockMask,
  type BooleanTensor,
  type Dropout,
  type FeatureName,
  type IntegerTensor,
  type KeyLists,
  type ProblemFeatures,
  type RotaryTables,
  type RowSelection,
  type Segments,
  type Sequence,
  type Sink,
} from './features.js';
export {
  changeFeatures,
  dropFeature,
  keepFeature,
  presentFeatures,
  readFeatures,
} from './each-feature.js';
export {
  broadcastStrides,
  type BroadcastStrides,
  broadcastPlaces,
  broadcastTerms,
} from './broadcast.js';
export { createRotation, type RotaryLayout, type Rotation } from './rotary.js';
export { rowPlaces, type RowPlace, type RowsOf } from './places.js';
export {
  quantities,
  quantityShape,
  rowElements,
  type Axis,
  type ByQuantity,
  type Quantity,
  type QuantityName,
  type WrittenOutputs,
} from './quantities.js';
export { checkProblem, problemShape } from './shape.js';
export {
  areSameRanges,
  clipRanges,
  commonRanges,
  countKeys,
  hasKey,
  keysOf,
  mergedRanges,
  spanOf,
  type KeyRange,
} from './key-ranges.js';
export { problemMask, visibleKeys, type Mask } from './masks/mask.js';
export { scoreLaw, scoreOf, type ScoreAddend, type ScoreLaw } from './score-law.js';
export {
  listEntries,
  listNumbers,
  listsOfHead,
  listSizes,
  type ListOwner,
} from './masks/read-lists.js';
export { gatherListed } from './masks/gather-listed.js';
export { listsName } from './masks/check-lists.js';
export { keptWeights, type KeptWeights } from './dropout.js';
export { maskTile, spanOfRows, type InterruptedRow, type TileView } from './masks/tile-mask.js';
export {
  slotCount,
  storedAt,
  storedShape,
  type StoredProblem,
  type StoredRows,
  type StoredTensor,
  type StoredTensors,
} from './stored.js';
export type { PackedForm, PaddedForm, PagedForm, StoredForm } from './stored.js';
export {
  posedRows,
  posedTensors,
  storedOf,
  storeProblem,
  spreadLists,
  type PosedProblem,
  cacheName,
  halfOfPages,
  storedHalf,
  type CacheHalf,
} from './store-problem.js';
export { gatherOutput, poseOutput, unusedRows } from './stored-outputs.js';
export { gatherFactors, gatherRows, scatterRows } from './gather-rows.js';
export {
  cropToArea,
  featureSettings,
  featureTensors,
  scoreTensors,
  type ScoreArea,
} from './feature-tensors.js';
export { attachScales, liesAsElements, type GivenScales } from './attach-scales.js';
export { scaledTensors, scaleTensorName, type ScaledTensor } from './scale-target.js';
export { scaleTensors, type NotedScales } from './scale-tensors.js';
export {
  checkRecurrentGradientInputs,
  plainRecurrentFamilies,
  recurrentFamilies,
  recurrentQuantities,
  recurrentQuantity,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentScale,
  recurrentShape,
  recurrentTensorName,
  softplusThreshold,
  usualStepLimit,
  withHeadGates,
  type GateInputs,
  type Mamba2Inputs,
  type Decay,
  type RecurrentFamily,
  type RecurrentGradientInputs,
  type RecurrentLaw,
  type RecurrentProblem,
  type RecurrentQuantity,
  type RecurrentQuantityName,
  type RecurrentResults,
  type RecurrentShape,
  type Write,
} from './recurrent/index.js';
export * from './cache/index.js';
