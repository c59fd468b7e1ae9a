export { createAccessTable, isCovered, missingOrder } from './accesses.js';
export type {
  Access,
  AccessClocks,
  AccessKind,
  AccessTable,
  MissingOrder,
  Proxy,
} from './accesses.js';
export { createBarrierHistory } from './barrier-history.js';
export type { BarrierHistory } from './barrier-history.js';
export { barrierViolationKinds } from './barrier-violations.js';
export type { BarrierViolation, BarrierViolationKind } from './barrier-violations.js';
export * from './barriers.js';
export {
  assignClock,
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
} from './clock.js';
export type { Chains, Clock, Position } from './clock.js';
export { createFindingCollector, findingKinds } from './finding.js';
export type { Finding, FindingAccess, FindingCollector, FindingKind } from './finding.js';
export { memoryModels, type MemoryModel, type MemoryModelName } from './memory-model.js';
export { createNamedBarrierHistory } from './named-barrier-history.js';
export type { NamedBarrierHistory } from './named-barrier-history.js';
export { operationKinds, type OperationKind } from './operation-kinds.js';
export type {
  Actor,
  MemoryArea,
  OperationOrder,
  OrderedCta,
  OrderedWarp,
  OrderTracker,
  WarpOrder,
} from './order-tracker.js';
export { createShadowMemory } from './shadow-memory.js';
export type { Region, ShadowMemory } from './shadow-memory.js';
export { conflictKinds } from './shadow-states.js';
export type { Conflict, ConflictKind } from './shadow-states.js';
export { createOrderTracker } from './track-order.js';
