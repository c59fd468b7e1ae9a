export {
  besideThreshold,
  resolveTiling,
  scaleKinds,
  usualTiling,
  type BlockOrder,
  type Regime,
  type ScaleKind,
  type Tiling,
} from './regime.js';
export {
  describeRegime,
  drawRegime,
  gradientRegimeNames,
  regimeNames,
  regimes,
  servedRegimeNames,
  usualRegimeNames,
  type RegimeDescription,
  type RegimeName,
} from './regimes.js';
