export type {
  Effect,
  LaneInstruction,
  LaneUnit,
  LaneValue,
  RegisterWidth,
} from '../../isa/index.js';
export type { AddressSpace, InstructionRequest, ResolvedOperand, Unsupported } from './request.js';
export { slotBytes, type Constant, type Slot, type SlotGuard, type Source } from './slot.js';
export type {
  IssuingWarp,
  PlacedTensorMap,
  TensorMaps,
  VisibleInstruction,
  RegisterFences,
  VisibleOperation,
} from './visible-instruction.js';
export type { WarpInstruction, WarpOperation } from './warp-instruction.js';
export {
  clearRegisterTags,
  createWarpRegisters,
  gatherFragment,
  moveToRegister,
  hasLane,
  laneAddresses,
  lowestLane,
  operandBits,
  operandNumber,
  scatterFragment,
  type FollowedRegisters,
  type WarpRegisters,
} from './warp-registers.js';
export { findLaneInstruction, type OperandForm } from './lane.js';
export { barrierInstructions } from './barrier/index.js';
export { memoryInstructions } from './memory/index.js';
export { tensorInstructions } from './tensor/index.js';
export { warpInstructions } from './warp/index.js';
