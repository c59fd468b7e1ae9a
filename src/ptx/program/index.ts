export type {
  Constant,
  LaneOperation,
  RunOperations,
  Slot,
  SlotGuard,
  Source,
} from './operation.js';
