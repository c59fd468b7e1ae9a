export {
  areMorallyStrong,
  Stamp,
  type AccessClocks,
  type AccessKind,
  type MissingOrder,
  type Proxy,
} from './accesses.js';
export { createBarrierHistory } from './barrier-history.js';
export { barrierViolationKinds, type BarrierViolation } from './finding.js';
export * from './barriers.js';
export {
  clockContains,
  clockIncludes,
  clockTime,
  copyClock,
  createChains,
  createClock,
  includeInClock,
  joinClock,
  resetClock,
  tickClock,
  type Chains,
  type Clock,
  type Position,
} from './clock.js';
export {
  createFindingCollector,
  findingGroup,
  findingKinds,
  findingWeight,
  messageAlone,
  type Finding,
  type FindingAccess,
  type FindingCollector,
  type FindingKind,
  type FindingWeight,
} from './finding.js';
export {
  createGridOrder,
  type GridOrder,
  footprintsMeet,
  forEachWritten,
  type GlobalFootprint,
} from './grid-order.js';
export { createLaneOrder, type LaneAccess, type LaneOrder } from './lane-order.js';
export {
  memoryModels,
  operationKinds,
  type MemoryModel,
  type MemoryModelName,
  type OperationKind,
} from './memory-model.js';
export { createNamedBarrierHistory } from './barrier-history.js';
export type {
  Actor,
  MemoryArea,
  OperationOrder,
  OrderedCta,
  OrderedWarp,
  OrderTracker,
  StrongAccess,
  WarpOrder,
} from './order-tracker.js';
export { mayComeLate } from './lifetimes.js';
export type { Region } from './region.js';
export {
  mergeDependences,
  type ClusterStep,
  type DependenceListener,
  type ScheduleDependence,
} from './schedule-dependences.js';
export { createShadowMemory } from './shadow-memory.js';
export { type Conflict, type ConflictKind } from './shadow-states.js';
export { createOrderTracker } from './track-order.js';
