export type { Constant, Slot, Source } from '../instructions/index.js';
export { createProgram } from './create-program.js';
export { controlInstructions } from './lower-control.js';
export type {
  Block,
  Item,
  LaneStretch,
  PlaceVariable,
  Program,
  ProgramFunction,
  Terminator,
  LaneOperation,
  RunOperations,
  WatchedRegister,
} from './program.js';
export type { ThreadPlace } from './special-registers.js';
export type { InstructionTables } from './tables.js';
export { splitStretch } from './watched.js';
