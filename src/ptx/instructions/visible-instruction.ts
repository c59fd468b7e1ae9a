import type { Fragment, Instruction, TensorMap } from '../../machine/index.js';
import type { Evidence } from './lane-instruction.js';
import type { InstructionRequest, Unsupported } from './request.js';
import type { Slot } from './slot.js';
import type { WarpRegisters } from './warp-registers.js';

/** A tensor map, with the address of its tensor in global memory. */
export interface PlacedTensorMap {
  readonly map: TensorMap;
  readonly address: number;
}

/**
 * The tensor maps of a launch: those among the kernel's parameters, and those in global memory, which a kernel may make or change itself. TMA
 * reads maps in a proxy of their own: it knows the maps that the launch has put there, and those acquired after their release (PTX ISA,
 * "Proxies", `fence.proxy.tensormap`). It does not matter which thread acquired them.
 */
export interface TensorMaps {
  /** The map at a generic address among the parameters; null where there is none. */
  readonly parameterAt: (address: number) => PlacedTensorMap | null;
  /** The map in global memory with these bytes at an address, or the fault of the map or of its proxy, for a message. */
  readonly inMemory: (address: number, bytes: Uint8Array) => PlacedTensorMap | string;
  /** Records that a map's bytes at an address have been released to the proxy. */
  readonly release: (address: number, bytes: Uint8Array) => void;
  /** Records that all current maps have been released. */
  readonly releaseAll: () => void;
  /** Records that the map at an address, with these bytes, has been acquired. */
  readonly acquire: (address: number, bytes: Uint8Array) => void;
}

/** The accesses to registers of wgmma that a `wgmma.fence` has ordered. */
export interface RegisterFences {
  /** Records that instructions other than wgmma have read or written registers, by the offsets of their slots. */
  readonly touch: (offsets: Iterable<number>) => void;
  readonly fence: () => void;
  /**
   * Records a product of a shape into D, with A from registers (or from none).
   *
   * @returns the reason why a fence is missing; null where none is
   */
  readonly multiply: (d: readonly Slot[], a: readonly Slot[], shape: string) => string | null;
}

/** The warp that issues a visible instruction, or the strand of it: its lanes that are converged. */
export interface IssuingWarp {
  readonly registers: WarpRegisters;
  /** Bit l for lane l: the strand's lanes whose guard holds. At least one. */
  readonly lanes: number;
  /** The rank of the CTA in its cluster. */
  readonly cta: number;
  /** The number of the warp in its CTA, and the number of warps. */
  readonly warp: number;
  readonly warps: number;
  /** Threads of the CTA. */
  readonly threads: number;
  /**
   * The fragment of registers that the machine uses after the instruction has been issued: accumulators of
   * wgmma, what a tcgen05.ld fills. It has what the registers hold. The same list of registers gives the same
   * fragment for as long as nothing else has touched them, so that a chain of MMAs accumulates in one. Whatever
   * else touches one of them yields `registers`, reading the fragment, before: the machine waits for what fills
   * it, or reports. Only for what `VisibleOperation.lends` names.
   */
  readonly lend: (slots: readonly Slot[]) => Fragment;
  readonly registerFences: RegisterFences;
  readonly tensorMaps: TensorMaps;
}

/** A visible instruction with its operands, as it stands in a program. */
export interface VisibleOperation {
  /**
   * Whether all lanes of the warp that have not exited must execute it together (`.aligned`): a warp that is not
   * converged there is a finding, and the lanes that are there go on without the others.
   */
  readonly isAligned: boolean;
  /** Registers that it writes before `issue` has come to its end. */
  readonly writes: readonly Slot[];
  /** Registers that it reads before `issue` has come to its end: addresses, data, coordinates. */
  readonly reads: readonly Slot[];
  /** Lists of registers that the machine goes on using after `issue` has come to its end. */
  readonly lends: readonly (readonly Slot[])[];
  /**
   * Yields the machine's instructions for it, one after the other, each with `site` of the request. What comes
   * after a yield runs when that instruction has been executed, so that its results can be written into registers
   * then. It may yield nothing (`prefetch`). Lanes with different operands may need several.
   */
  readonly issue: (warp: IssuingWarp) => Generator<Instruction, void, void>;
}

/** An instruction that others see: memory, barriers, asynchronous copies and MMAs, fences, atomics. */
export interface VisibleInstruction {
  /**
   * The opcode and the modifiers that each form of it begins with: `ld`, `cp.async.bulk.tensor`, `tcgen05.mma`. An
   * instruction belongs to the row with the longest name with which it begins, modifier by modifier.
   */
  readonly name: string;
  readonly evidence: Evidence;
  /** The section of the PTX ISA, or the capture, that says what it does. */
  readonly source: string;
  /** The operation, or what is missing for this form. Called once for each place in a program. */
  readonly lower: (request: InstructionRequest) => VisibleOperation | Unsupported;
}
