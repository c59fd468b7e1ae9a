export { describeCase, describeProblem } from './describe-problem.js';
export {
  decodeProblem,
  encodeProblem,
  featuresOf,
  tensorNames,
  type PlainProblem,
  type TensorName,
} from './plain-problem.js';
export {
  describeFeature,
  excludeOneAnother,
  featureKinds,
  hidingKinds,
  kindsOf,
  kindsTaken,
  storageKinds,
  takesFeatures,
  type FeatureKind,
} from './features/feature-kinds.js';
export {
  arrangeFeatures,
  arrangementLoss,
  type FeatureSelection,
} from './features/arrange-features.js';
export { drawPages, posedFor, takesSequences } from './features/stored-forms.js';
export { attentionProblem, gradientProblem, type GradientProblem } from './problem-arbitrary.js';
export { doutKinds, type DoutKindName } from './gradients/draw-dout.js';
export { specialKinds, type ProblemConstraints, type SpecialKind } from './problem-constraints.js';
export { hasEmptyRows } from './problem-generator.js';
export {
  besideThreshold,
  describeRegime,
  gradientRegimeNames,
  regimeNames,
  servedRegimeNames,
  usualRegimeNames,
  scaleKinds,
  type BlockOrder,
  type RegimeDescription,
  type RegimeName,
  type ScaleKind,
  type Tiling,
} from './regimes/index.js';
export { fittingRegimes, resolveConstraints } from './resolve-constraints.js';
export {
  scoreProblem,
  scoreRegime,
  scoreRegimeNames,
  type ScoreProblemRequest,
  type ScoreRegimeName,
} from './score-problem.js';
export {
  alignedDown,
  alignedUp,
  fewestElements,
  sizeNames,
  type FullSizeRange,
  type SizeMultiples,
  type SizeName,
  type SizeRange,
} from './sizes.js';
export { randomValues, type RandomValues } from './values.js';
export { simplerElements, simplerRows, simplerTensors } from './value-shrinker.js';
