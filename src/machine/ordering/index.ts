export { isCovered, missingOrder } from './access-order.js';
export type { AccessClocks, MissingOrder } from './access-order.js';
export { createAccessTable } from './accesses.js';
export type { Access, AccessKind, AccessTable, Proxy } from './accesses.js';
export { createChains } from './chains.js';
export type { Chains, Position } from './chains.js';
export {
  assignClock,
  clockContains,
  clockIncludes,
  clockTime,
  copyClock,
  createClock,
  includeInClock,
  joinClock,
  resetClock,
  tickClock,
} from './clock.js';
export type { Clock } from './clock.js';
export { conflictKinds } from './conflicts.js';
export type { Conflict, ConflictKind } from './conflicts.js';
export { createShadowMemory } from './shadow-memory.js';
export type { Region, ShadowMemory } from './shadow-memory.js';
export { createBarrierHistory } from './barrier-history.js';
export type { BarrierHistory } from './barrier-history.js';
export { barrierViolationKinds } from './barrier-violations.js';
export type { BarrierViolation, BarrierViolationKind } from './barrier-violations.js';
export { createNamedBarrierHistory } from './named-barrier-history.js';
export type { NamedBarrierHistory } from './named-barrier-history.js';
