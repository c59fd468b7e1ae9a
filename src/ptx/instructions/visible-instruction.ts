import type { Fragment, Instruction, TensorMap } from '../../machine/index.js';
import type { EffectOfForms, Evidence } from '../../isa/index.js';
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
   * wgmma, destinations of a tcgen05.ld. It starts with the registers' values. The same list of registers gives
   * the same fragment as long as nothing else has touched them, so a chain of MMAs accumulates in one. Before
   * anything else touches one of them, it yields `registers`, which reads the fragment: the machine waits for
   * the operation that fills it, or reports. Only for lists that `VisibleOperation.lends` names.
   */
  readonly lend: (slots: readonly Slot[]) => Fragment;
  readonly registerFences: RegisterFences;
  readonly tensorMaps: TensorMaps;
}

/** A visible instruction with its operands, in its place in a program. */
export interface VisibleOperation {
  /**
   * Whether all lanes of the warp that have not exited must execute it together (`.aligned`): a warp that is not
   * converged there is a finding, and the lanes at the instruction go on without the others.
   */
  readonly isAligned: boolean;
  /** Registers that it writes before `issue` ends. */
  readonly writes: readonly Slot[];
  /** Registers that it reads before `issue` ends: addresses, data, coordinates. */
  readonly reads: readonly Slot[];
  /** Lists of registers that the machine goes on using after `issue` has ended. */
  readonly lends: readonly (readonly Slot[])[];
  /**
   * Yields the machine's instructions for it, one after the other, each with `site` of the request. Code after a
   * yield runs when that instruction has been executed, so it can write the results into registers. It may yield
   * nothing (`prefetch`). Lanes with different operands may need several.
   */
  readonly issue: (warp: IssuingWarp) => Generator<Instruction, void, void>;
}

/** An instruction that others see: memory, barriers, asynchronous copies and MMAs, fences, atomics. */
export interface VisibleInstruction {
  /**
   * The opcode and the first modifiers of all its forms: `ld`, `cp.async.bulk.tensor`, `tcgen05.mma`. An
   * instruction belongs to the row with the longest name that it begins with, modifier by modifier.
   */
  readonly name: string;
  /**
   * What the values that it leaves in registers and memory stand for. Where there are several words, the machine's
   * instructions say which (`meaningOf`).
   */
  readonly meaning: EffectOfForms;
  readonly evidence: Evidence;
  /** The section of the PTX ISA, or the capture, that defines it. */
  readonly source: string;
  /** The operation, or the missing feature of this form. Called once for each place in a program. */
  readonly lower: (request: InstructionRequest) => VisibleOperation | Unsupported;
}
