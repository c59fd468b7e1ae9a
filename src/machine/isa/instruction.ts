import type {
  ByteStore,
  FragmentReduction,
  FragmentTransfer,
  MatrixDescriptor,
  TensorCopyShape,
  TensorMap,
} from '../memory/index.js';
import type { BarrierInstruction } from './barrier-instruction.js';
import type { AtomicOperation, MemoryInstruction } from './memory-instruction.js';
import type { MmaInstruction, WarpgroupShape } from './tensor-core/index.js';

/**
 * Registers of a warp: 32 lanes, each lane's registers contiguous ([lane][register], 32 bits each). A
 * fragment is identified by its buffer: a read of any part of a buffer waits for all loads into it.
 */
export type Fragment = ByteStore<ArrayBuffer>;

/** Name of the bytes or words that an instruction moves, for counters. */
export type OperandName = string;

/** Number of warp instructions of each PTX mnemonic that a piece of code issues. */
export type InstructionCounts = Readonly<Record<string, number>>;

/** Properties that every instruction may have beside its operands. */
interface Common {
  /** The place in the program, as `K full: wait`: its name in findings and counters, and in a change of the program. */
  readonly site?: string;
}

/** One CTA of a cluster alone, or the pair of CTAs that share an instruction. */
export type CtaGroup = 1 | 2;

/** The registers that come from, or go to, an address of each lane; −1 for a lane that does nothing. */
type LaneAddresses = Int32Array;

/** tcgen05.mma, with the names of its operands for counters. */
export type Tcgen05Mma = Common &
  MmaInstruction & {
    readonly op: 'tcgen05.mma';
    readonly names: { readonly a: OperandName; readonly b: OperandName; readonly d: OperandName };
  };

/** The instructions of the machine, under the names of the PTX ISA. */
export type Instruction =
  | Tcgen05Mma
  | (Common & MemoryInstruction)
  | (Common & BarrierInstruction)
  | (Common & {
      readonly op: 'tcgen05.alloc';
      readonly group: CtaGroup;
      readonly columns: number;
      /** The word of shared memory that gets the address. */
      readonly destination: number;
    })
  | (Common & {
      readonly op: 'tcgen05.dealloc';
      readonly group: CtaGroup;
      readonly address: number;
      readonly columns: number;
    })
  | (Common & { readonly op: 'tcgen05.relinquish_alloc_permit'; readonly group: CtaGroup })
  | (Common & {
      readonly op: 'tcgen05.cp';
      readonly group: CtaGroup;
      readonly shape: TensorCopyShape;
      readonly address: number;
      readonly source: MatrixDescriptor;
      readonly name: OperandName;
    })
  | (Common & {
      readonly op: 'tcgen05.commit';
      readonly group: CtaGroup;
      /** An offset in shared memory, the same in every CTA of `ctas`. */
      readonly barrier: number;
      /** Ranks of the CTAs whose barrier is arrived on; several with `.multicast::cluster`. */
      readonly ctas: readonly number[];
    })
  | (Common & {
      readonly op: 'tcgen05.ld' | 'tcgen05.st';
      readonly transfer: FragmentTransfer;
      readonly address: number;
      readonly fragment: Fragment;
      /** For a load: the reduction of each lane's registers (`tcgen05.ld.red`). */
      readonly reduction?: FragmentReduction;
      readonly name: OperandName;
    })
  | (Common & {
      readonly op:
        | 'tcgen05.wait::ld'
        | 'tcgen05.wait::st'
        | 'tcgen05.fence::before_thread_sync'
        | 'tcgen05.fence::after_thread_sync'
        | 'cp.async.bulk.commit_group';
    })
  | (Common & {
      readonly op: 'cp.async.bulk.tensor.shared.global';
      readonly map: TensorMap;
      readonly coordinates: readonly number[];
      /** An offset in the CTA's own shared memory. */
      readonly destination: number;
      /** A cluster address. */
      readonly barrier: number;
      /**
       * `.multicast::cluster`: the CTAs that get the box, each at this offset, and whose barriers at that of
       * `barrier` count the bytes; with `group` 2 the barriers are those of the CTAs in their pairs whose rank has
       * the parity of this CTA's.
       */
      readonly multicast?: { readonly ctas: readonly number[]; readonly group: CtaGroup };
      readonly name: OperandName;
    })
  | (Common & {
      readonly op: 'cp.async.bulk.tensor.global.shared';
      readonly map: TensorMap;
      readonly coordinates: readonly number[];
      readonly source: number;
      /** `cp.reduce`: the operation on the tensor's elements; a copy where it is left out. */
      readonly reduction?: AtomicOperation | undefined;
      readonly name: OperandName;
    })
  | (Common & {
      readonly op: 'cp.async.bulk.wait_group' | 'cp.async.bulk.wait_group.read';
      /** The most recent groups that may be pending. */
      readonly pending: number;
    })
  | (Common & {
      readonly op: 'ld.shared' | 'st.shared';
      /** Words of each lane: 1, 2 or 4 (.v2, .v4). */
      readonly words: 1 | 2 | 4;
      readonly addresses: LaneAddresses;
      /** [lane][words]. */
      readonly fragment: Fragment;
      readonly name: OperandName;
    })
  | (Common & {
      readonly op: 'ld.global' | 'st.global';
      readonly memory: ByteStore;
      /** Indices of words of that memory. */
      readonly addresses: LaneAddresses;
      readonly fragment: Fragment;
      readonly name: OperandName;
    })
  | (Common & {
      /** One warp's part of a wgmma: 16 of its 64 rows. */
      readonly op: 'wgmma.mma_async';
      readonly a: WarpgroupShape['a'];
      readonly b: WarpgroupShape['b'];
      readonly accumulator: WarpgroupShape['accumulator'];
      readonly n: number;
      readonly saturates?: boolean;
      readonly accumulate: boolean;
      readonly negateA: boolean;
      readonly negateB: boolean;
      /** Four registers of each lane, or all 64 rows in shared memory. */
      readonly aOperand:
        | { readonly space: 'registers'; readonly fragment: Fragment }
        | { readonly space: 'shared'; readonly descriptor: MatrixDescriptor };
      readonly bOperand: MatrixDescriptor;
      /** n / 2 registers of each lane; n / 4 of fp16. */
      readonly d: Fragment;
    })
  | (Common & {
      readonly op: 'wgmma.fence';
      /** Called when it is executed: only the program knows which registers it orders. */
      readonly onExecution?: () => void;
    })
  | (Common & { readonly op: 'wgmma.commit_group' })
  | (Common & {
      readonly op: 'wgmma.wait_group';
      /** The most recent groups that may be pending. */
      readonly pending: number;
    })
  | (Common & {
      readonly op: 'setmaxnreg';
      readonly action: 'inc' | 'dec';
      /** Registers of each thread. */
      readonly registers: number;
    })
  | (Common & {
      readonly op: 'clusterlaunchcontrol.try_cancel';
      /** Offset of the 16 bytes that get the answer, and that of the barrier that counts them, in shared memory. */
      readonly destination: number;
      readonly barrier: number;
      /** `.multicast::cluster::all`: each CTA of the cluster gets the answer, at these offsets. */
      readonly isMulticast: boolean;
    })
  | (Common & {
      /**
       * Straight-line code on registers alone: `execute` computes and returns the instructions that the
       * warp issued for it. It waits for the loads into the fragments that it reads; a fragment that it
       * overwrites and does not read is named among them.
       */
      readonly op: 'registers';
      readonly reads: readonly Fragment[];
      readonly execute: () => InstructionCounts;
    })
  | (Common & {
      /**
       * Lanes of the warp take different paths: each strand runs on its own, and the warp waits until all have
       * ended.
       */
      readonly op: 'diverge';
      readonly strands: readonly { readonly name: string; readonly program: WarpProgram }[];
    })
  | (Common & {
      /** Lanes wait for others of their warp, for a condition that only the program knows. */
      readonly op: 'converge';
      readonly isReady: () => boolean;
      readonly waitsFor: () => string;
    })
  | (Common & {
      /** An illegal use that the program has found and the machine cannot see: it is reported. */
      readonly op: 'report';
      readonly kind: 'convergence' | 'trap' | 'instruction-shape' | 'race';
      readonly message: string;
    });

/** The name of an instruction. */
export type Opcode = Instruction['op'];

type Named<Candidate, Op> = Candidate extends { readonly op: infer Name }
  ? Op extends Name
    ? Candidate & { readonly op: Op }
    : never
  : never;

/** The instructions of one name. */
export type InstructionOf<Op extends Opcode> = Named<Instruction, Op>;

/** Place of a warp in a cluster. */
export interface WarpPlace {
  /** The CTA's rank in its cluster. */
  readonly cta: number;
  readonly warp: number;
}

/**
 * The program of a warp: it yields instructions one after the other and finds their results in the
 * fragments that it named, when the instruction that waits for them has been executed.
 */
export type WarpProgram = Generator<Instruction, void, void>;

/** Name of an instruction in messages: its place in the program, or its mnemonic; null stands for the end. */
export function siteOf(instruction: Instruction | null): string {
  return instruction === null ? 'the end' : (instruction.site ?? instruction.op);
}
