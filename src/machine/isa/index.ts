export * from './arithmetic/index.js';
export { clusterAddress, splitClusterAddress } from './cluster-address.js';
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
export type {
  AccessOrder,
  AccessSpace,
  AtomicOperation,
  AtomicType,
  BulkReduction,
  LanePlaces,
  MemoryInstruction,
  MemoryOrder,
  MemoryScope,
} from './memory-instruction.js';
export {
  allLanes,
  electedLane,
  isActive,
  laneCount,
  warpLanes,
  type LaneMask,
} from '../../isa/index.js';
export * from './tensor-core/index.js';
