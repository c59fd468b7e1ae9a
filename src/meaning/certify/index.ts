export { findHarmlessRaces, racingLoads } from './harmless-races.js';
export { liveValues } from './live-values.js';
export {
  compareValues,
  findParting,
  type ElementComparison,
  type HashedRun,
  type Parting,
} from './compare-expressions.js';
export {
  countOverflowed,
  coverageOf,
  outputValues,
  standingOf,
  type Coverage,
  type OutputValues,
  type Standing,
} from './output-values.js';
export { profileRounding, type RoundingProfile } from './rounding-lines.js';
export {
  findForbiddenReach,
  type ForbiddenReach,
  type GuardedOutput,
  type OutputReach,
  type ReachedElement,
} from './unreached.js';
