export type { Constant, Slot, SlotGuard, Source } from '../instructions/index.js';
export { createProgram, type ProgramOptions } from './create-program.js';
export type {
  Block,
  HandedOver,
  Item,
  LaneStretch,
  ModuleVariable,
  ParameterRegister,
  PlaceVariable,
  Program,
  ProgramFunction,
  Terminator,
  LaneOperation,
  RunOperations,
  WatchedLines,
  WatchedRegister,
} from './program.js';
export type { SpecialRegister, ThreadPlace } from './special-registers.js';
export type { InstructionTables } from './tables.js';
export { splitStretch } from './watched.js';
