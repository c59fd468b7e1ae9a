export { describeRegime, type RegimeDescription } from './describe-regime.js';
export { drawRegime, type RegimeFrame } from './draw-regime.js';
export type { Regime, RegimeRequest, RegimeValues } from './regime.js';
export { regimeNames, regimes, type RegimeName } from './regimes.js';
