import type { Proxy } from './accesses.js';

/** Orders of a machine's execution on which the texts of the ISA and the hardware differ. */
export interface MemoryModel {
  readonly name: string;
  readonly description: string;
  /** The name of the next stricter model, step by step up to the letter of the ISA; null for none. */
  readonly stricter: string | null;
  /**
   * The MMAs of one warp that are executed in the order of issue, beyond those into the same
   * accumulator with the same shape: none, those that write what an earlier one reads as A, or all.
   */
  readonly mmaOrder: 'accumulator' | 'operand-reads' | 'issue';
  /**
   * Whether a tcgen05.cp is executed after the MMAs and copies that its warp has issued before; the ISA orders copies before
   * later MMAs alone. Triton (3.9) and CUTLASS (4) copy the next tile's scale factors over those that earlier MMAs read.
   */
  readonly copyOrder: boolean;
  /**
   * Whether an instruction that needs a register that tcgen05.ld or wgmma fills orders it before itself, as ptxas sees to it; else
   * their waits do.
   */
  readonly registerDependencies: boolean;
  /**
   * Whether tcgen05 operations of different warps are ordered through barriers only with
   * tcgen05.fence::before_thread_sync and ::after_thread_sync.
   */
  readonly tensorFences: boolean;
  /**
   * Whether bytes written by cp.async need a fence.proxy.async before wgmma or tcgen05.mma read them. Compilers (Triton 3.6
   * on sm_90) put none there.
   */
  readonly copyFences: boolean;
  /**
   * Whether the async proxy may overwrite bytes that the generic proxy has read only after a fence.proxy.async, as the ISA
   * says; in practice reads have left shared memory before any barrier that follows.
   */
  readonly readFences: boolean;
  /**
   * Whether weak writes of equal bytes to one place need an order. Triton's warps with roles get their arguments from
   * shared memory, where each warp of the others stores them (3.6 and 3.9, on sm_100).
   */
  readonly equalWrites: boolean;
  /**
   * Whether the async proxy may use an mbarrier only after a fence.mbarrier_init or fence.proxy.async that follows its
   * initialisation, as the ISA says; otherwise a missing fence is a hint. Triton (3.6 and 3.9) puts a bar.sync there
   * and no fence.
   */
  readonly initialisationFences: boolean;
  /**
   * Whether the warps of a warpgroup execute setmaxnreg with one number of registers, and meet between two of them, as the ISA
   * says; otherwise each executes the same ones as the others, with a number of its own. The idle warp of FlashAttention-4's
   * forward gives back more than others of its group, and Triton's warps with roles (3.6) do not meet.
   */
  readonly registerGroups: boolean;
  /**
   * Whether a wgmma comes after everything that each of its four warps has done before it, and an agent that knows its own part to be
   * complete knows all of it to be. The ISA calls it an operation of the warpgroup and says no more; on an H200 a late warp holds up
   * the others' waits for as long, and its earlier writes are read. In CUTLASS's pipelines one thread of a warpgroup releases buffers
   * that all its warps have read, and FlashAttention-3's warps write P for it with no order between them.
   */
  readonly warpgroupOrder: boolean;
  /** Whether lanes of a warp that are converged need bar.warp.sync between them, as the ISA says. */
  readonly laneOrder: boolean;
  /**
   * Whether a tcgen05.commit has to have arrived before its barrier or its CTA ends, as the ISA says, also where all operations
   * that it tracks are known to be complete. Triton's MMA warps (3.6) do not wait for their last one, which releases a buffer.
   */
  readonly lastCommits: boolean;
}

/**
 * The memory models. Sources: PTX ISA 9.2, "Memory Consistency Model for 5th generation of TensorCore
 * operations" (pipelined instructions, canonical synchronization patterns); later revisions order
 * an MMA's reads of A before the writes of D of later MMAs of the warp. Tensor cores of a B300 have
 * been measured to execute MMAs one after the other, whatever their shapes and issuing warps, which
 * no text promises.
 */
export const memoryModels = {
  practice: {
    name: 'practice',
    description: 'what kernels rely on: A is read before later MMAs write there; no tcgen05.fence',
    stricter: 'ptx',
    mmaOrder: 'operand-reads',
    copyOrder: true,
    registerDependencies: true,
    tensorFences: false,
    copyFences: false,
    readFences: false,
    equalWrites: false,
    initialisationFences: false,
    registerGroups: false,
    warpgroupOrder: true,
    laneOrder: false,
    lastCommits: false,
  },
  ptx: {
    name: 'ptx',
    description: 'the PTX ISA, with the order of A before D of its later revisions',
    stricter: 'ptx-9.2',
    mmaOrder: 'operand-reads',
    copyOrder: false,
    registerDependencies: false,
    tensorFences: true,
    copyFences: true,
    readFences: true,
    equalWrites: true,
    initialisationFences: true,
    registerGroups: true,
    warpgroupOrder: false,
    laneOrder: true,
    lastCommits: true,
  },
  'ptx-9.2': {
    name: 'ptx-9.2',
    description: 'the letter of PTX ISA 9.2: only MMAs into one accumulator are ordered',
    stricter: null,
    mmaOrder: 'accumulator',
    copyOrder: false,
    registerDependencies: false,
    tensorFences: true,
    copyFences: true,
    readFences: true,
    equalWrites: true,
    initialisationFences: true,
    registerGroups: true,
    warpgroupOrder: false,
    laneOrder: true,
    lastCommits: true,
  },
  pipe: {
    name: 'pipe',
    description: 'as measured: one tensor pipe that executes MMAs in the order of issue',
    stricter: 'practice',
    mmaOrder: 'issue',
    copyOrder: true,
    registerDependencies: true,
    tensorFences: false,
    copyFences: false,
    readFences: false,
    equalWrites: false,
    initialisationFences: false,
    registerGroups: false,
    warpgroupOrder: true,
    laneOrder: false,
    lastCommits: false,
  },
} as const satisfies Readonly<Record<string, MemoryModel>>;

/** The name of a memory model. */
export type MemoryModelName = keyof typeof memoryModels;

/** Properties of an operation's kind that decide its order with others. */
interface OperationTraits {
  /** The way to memory that it takes, where there are several. */
  readonly proxy: Proxy;
  /** Whether a memory model may require tcgen05 fences between it and operations of other warps. */
  readonly takesTensorFences: boolean;
  /** Whether tcgen05.commit tracks it. */
  readonly isCommitted: boolean;
  /** Whether it may be under way at the end of its CTA, from which it then needs nothing more. */
  readonly mayOutliveCta: boolean;
}

const traits = {
  mma: { proxy: 'async', takesTensorFences: true, isCommitted: true, mayOutliveCta: false },
  copy: { proxy: 'async', takesTensorFences: true, isCommitted: true, mayOutliveCta: false },
  commit: { proxy: 'async', takesTensorFences: false, isCommitted: false, mayOutliveCta: false },
  'tensor-load': {
    proxy: 'async',
    takesTensorFences: true,
    isCommitted: false,
    mayOutliveCta: false,
  },
  'tensor-store': {
    proxy: 'async',
    takesTensorFences: true,
    isCommitted: false,
    mayOutliveCta: false,
  },
  'bulk-load': {
    proxy: 'async',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: false,
  },
  'bulk-store': {
    proxy: 'async',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: true,
  },
  /** The write of a bulk store, after it has read. */
  'bulk-write': {
    proxy: 'async',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: true,
  },
  wgmma: { proxy: 'async', takesTensorFences: false, isCommitted: false, mayOutliveCta: false },
  'lane-copy': {
    proxy: 'generic',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: false,
  },
  'remote-store': {
    proxy: 'generic',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: false,
  },
  'lane-copy-arrival': {
    proxy: 'generic',
    takesTensorFences: false,
    isCommitted: false,
    mayOutliveCta: false,
  },
} as const satisfies Readonly<Record<string, OperationTraits>>;

/** The kinds of operations that complete by themselves. */
export type OperationKind = keyof typeof traits;

/** By kind, in the order in which adversarial schedules take them. */
export const operationKinds: Readonly<Record<OperationKind, OperationTraits>> = traits;
