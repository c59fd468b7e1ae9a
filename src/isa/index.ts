export type {
  Effect,
  EffectOfForms,
  Evidence,
  LaneInstruction,
  LaneUnit,
  LaneValue,
  Meaning,
  RegisterWidth,
  Variant,
} from './instruction.js';
export { laneRows } from './table.js';
export { row, type Row, type RowFacts } from './row.js';
export { allLanes, electedLane, isActive, laneCount, warpLanes, type LaneMask } from './lanes.js';
export { outOfBoundsNan } from './half/arithmetic.js';
