export {
  largestScore32,
  roundoff32,
  scaleErrorOf,
  type DropoutArithmetic,
  type ExponentArithmetic,
  type ExponentialArithmetic,
  type FinishArithmetic,
  type KernelArithmetic,
  type MaximumRule,
  type SumArithmetic,
  type ValueTiles,
} from './arithmetic.js';
export type {
  AttributedKernel,
  AttributedPiece,
  EmulatedNames,
  LargestWeights,
} from './techniques.js';
export type {
  KernelExponential,
  KernelModel,
  KernelPiece,
  KernelSetting,
  KernelSettings,
  PreparedKernel,
} from './kernel-model.js';
export type {
  ExponentialSplit,
  KernelProgram,
  KernelProgramOptions,
  PreparedKernelProgram,
  ProgramClusterRun,
  ProgramMutant,
  RescaleTraffic,
} from './kernel-program.js';
export type {
  BackwardInputs,
  BackwardModel,
  BackwardPatterns,
  BackwardPiece,
  DeltaSource,
  ForwardOutputs,
  GradientArithmetic,
  OrderMatch,
  OrderMatches,
  PreparedBackward,
} from './backward/model.js';
export {
  assembleBackwardPieces,
  checkBackwardInputs,
  type BackwardAssembly,
  type BackwardGradients,
} from './backward/pieces.js';
export {
  addOrderMatches,
  givenPieces,
  matchBackwardPiece,
  noOrderMatches,
  type GivenGradients,
  type MatchedPiece,
} from './backward/match.js';
export {
  exactLaws,
  scaleKinds,
  type BackwardPromises,
  type ModelPromises,
  type ScaleKind,
} from './promises.js';
export { checkFeatures, kernelModel } from './kernel-features.js';
export {
  defaultKernelModel,
  findKernelModel,
  findModelAmong,
  kernelModels,
  backwardOf,
  forwardSettings,
  runBackward,
  type BackwardResults,
} from './models.js';
export {
  accumulatorFormats,
  divisionQualities,
  exponentialQualities,
  factorQualities,
  integerRoundings,
  operandFormats,
  operandGroups,
  outputRoundings,
  quantisedScalePlaces,
  rowSumOrders,
  scalePlaces,
  sharedMaxima,
  smoothedLseKinds,
  smoothings,
  valueFormats,
  type AccumulatorFormat,
  type ExponentialQuality,
  type FactorQuality,
  type OutputRounding,
  type PremiseDeclaration,
  type RowSumOrder,
  type ScalePlace,
  type SharedMaximum,
} from './promises.js';
export {
  describeQuantisation,
  largestOfGroups,
  quantisationOf,
  quantiseIntegers,
  quantiseProblem,
  rowGroups,
  smoothKeys,
  type IntegerRule,
  type Integers,
  type OperandQuantisation,
  type Quantisation,
  type QuantisationSteps,
  type QuantisedProblem,
  type RowGroups,
  type SmoothedKeys,
} from './quantised/index.js';
export {
  assembleKernelPieces,
  runKernelModel,
  type KernelAssembly,
  type KernelResults,
} from './models.js';
export { attributeLumped, type LumpedKernel, type UnroundedRows } from './lumped-attribution.js';
export { booleanValue, checkKeys, choiceValue, numberValue } from './setting-values.js';
export { techniques, type Technique, type TechniqueDefinition } from './techniques.js';
export * from './naive/index.js';
export * from './cutlass-fmha.js';
export * from './fa1.js';
export * from './flashinfer/index.js';
export * from './recurrent/index.js';
export * from './fa2/index.js';
export * from './fa3/index.js';
export * from './fa4/index.js';
export { attributeFa4 } from './fa4/forward-model.js';
export {
  findKernelVariant,
  kernelVariants,
  noVariant,
  type KernelVariant,
} from './fa4/variants/index.js';
export {
  applicableFaults,
  emulateRecurrence,
  faultApplies,
  findRecurrentFault,
  findRecurrentModel,
  madeGateFaults,
  mamba2Faults,
  readRecurrentSettings,
  recurrentFaults,
  recurrentModels,
  recurrentOperands,
  recurrentValues,
  roundingTo,
  runRecurrence,
  unrounded,
  type FaultSetting,
  type RecurrentArithmetic,
  type RecurrentFault,
  type RecurrentModel,
  type RecurrentModelSettings,
  type RecurrentRounding,
  type RecurrentRunOptions,
  type RecurrentValue,
} from './recurrent/index.js';
