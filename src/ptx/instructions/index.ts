export type {
  Evidence,
  LaneInstruction,
  LaneUnit,
  LaneValue,
  RegisterWidth,
} from './lane-instruction.js';
