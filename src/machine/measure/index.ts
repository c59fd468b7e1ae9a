export {
  count,
  countInstructions,
  createCtaCounters,
  differenceOfCounters,
  sumOfCounters,
  type Amounts,
  type CtaCounters,
} from './counters.js';
export type { RooflineUnit, UnitPart } from './unit-rates.js';
export {
  balancedShare,
  clocksOf,
  operandClocks,
  roofline,
  type BalancedShare,
  type Roofline,
  type RooflineAtShare,
  type RooflineLine,
} from './roofline.js';
export {
  createUnitOccupancy,
  type TimedOperation,
  type TimedWarp,
  type TraceEvent,
  type UnitOccupancy,
} from './timing.js';
export { partitions, unitRates, type TimedUnit, type UnitRates } from './unit-rates.js';
export { smRates, type SmRates } from './sm-rates.js';
