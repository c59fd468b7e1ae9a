export type { Constant, Slot, SlotGuard, Source } from '../instructions/index.js';
export type { LaneOperation, RunOperations } from './operation.js';
