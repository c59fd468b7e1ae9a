export * from './arithmetic.js';
export {
  siteOf,
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
export {
  type AccessOrder,
  type AccessSpace,
  type AtomicOperation,
  type AtomicType,
  type BulkReduction,
  type LanePlaces,
  type MemoryInstruction,
  type MemoryOrder,
  type MemoryScope,
  clusterAddress,
  splitClusterAddress,
} from './memory-instruction.js';
export {
  allLanes,
  type Effect,
  electedLane,
  isActive,
  laneCount,
  type Meaning,
  warpLanes,
  type LaneMask,
} from '../../isa/index.js';
export * from './tensor-core/index.js';
