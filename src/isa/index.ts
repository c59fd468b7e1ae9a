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
export * from './values/float-type.js';
export * from './values/integer-type.js';
export * from './values/rounding.js';
export { ofHalves } from './pairs.js';
export * from './runs/float32-loops.js';
export { arrayLoop } from './runs/array-loops.js';
export { outOfBoundsNan } from './half/arithmetic.js';
export { registerOfType } from './registers.js';
