export * from './arithmetic/index.js';
export {
  clusterAddress,
  siteOf,
  splitClusterAddress,
  type CtaGroup,
  type Fragment,
  type Instruction,
  type InstructionCounts,
  type InstructionOf,
  type Opcode,
  type OperandName,
  type Tcgen05Mma,
  type WarpPlace,
  type WarpProgram,
} from './instruction.js';
export type {
  AccessOrder,
  AccessSpace,
  AtomicOperation,
  AtomicType,
  LanePlaces,
  MemoryInstruction,
  MemoryOrder,
  MemoryScope,
} from './memory-instruction.js';
export { electedLane, isActive, laneCount, type LaneMask } from './arithmetic/instruction.js';
export * from './tensor-core/index.js';
