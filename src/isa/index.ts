export type {
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
export {
  allLanes,
  electedLane,
  evaluatingLoop,
  isActive,
  laneCount,
  warpLanes,
  type LaneMask,
  type Operand,
  type Run,
  type RunLoop,
} from './runs/run.js';
export { outOfBoundsNan } from './half/arithmetic.js';
