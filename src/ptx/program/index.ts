export type { Constant, Slot, SlotGuard, Source } from '../instructions/index.js';
export { createProgram, type ProgramOptions } from './create-program.js';
export type { LaneOperation, RunOperations } from './operation.js';
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
} from './program.js';
export type { SpecialRegister, ThreadPlace } from './special-registers.js';
export type { InstructionTables } from './tables.js';
export type { WatchedLines, WatchedRegister } from './watched-register.js';
export { splitStretch } from './watched.js';
