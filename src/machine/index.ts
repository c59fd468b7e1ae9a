export { hasAtomic, meaningOf, mostRegisters } from './instructions/index.js';
export * from './isa/index.js';
export {
  clocksOf,
  roofline,
  smRates,
  sumOfCounters,
  unitRates,
  type Amounts,
  type CtaCounters,
  type Roofline,
  type RooflineLine,
  type RooflineUnit,
  type SmRates,
  type TimedUnit,
  type TraceEvent,
  type UnitPart,
  type UnitRates,
} from './measure/index.js';
export * from './memory/index.js';
export {
  createGridOrder,
  footprintsMeet,
  forEachWritten,
  findingGroup,
  findingKinds,
  findingWeight,
  messageAlone,
  memoryModels,
  mergeDependences,
  type ClusterStep,
  type DependenceListener,
  type Finding,
  type FindingAccess,
  type FindingKind,
  type FindingWeight,
  type GlobalFootprint,
  type GridOrder,
  type MemoryModel,
  type MemoryModelName,
  type ScheduleDependence,
} from './ordering/index.js';
export * from './schedule/index.js';
export type { LaunchMemory, Step } from './state.js';
export * from './trace/index.js';
export * from './value-tracer.js';
