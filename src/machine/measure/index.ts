export {
  count,
  countInstructions,
  createCtaCounters,
  sumOfCounters,
  type Amounts,
  type CtaCounters,
} from './counters.js';
export type { RooflineUnit, UnitPart } from './unit-rates.js';
export { clocksOf, roofline, type Roofline, type RooflineLine } from './roofline.js';
export { createUnitOccupancy, type TraceEvent, type UnitOccupancy } from './timing.js';
export { partitions, unitRates, type TimedUnit, type UnitRates } from './unit-rates.js';
export { smRates, type SmRates } from './sm-rates.js';
