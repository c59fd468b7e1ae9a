import { clockIncludes, clockTime } from '../ordering/index.js';
import type { InstructionOf } from '../isa/index.js';
import {
  report,
  type CtaState,
  type MachineState,
  type RegisterPool,
  type WarpState,
} from '../state.js';
import { movesNothing, type InstructionRecords } from './record.js';
import { executeTogether, warpgroupWarps } from './warpgroups.js';

type SetRegisters = InstructionOf<'setmaxnreg'>;

/** Registers of an SM, which one CTA may have in full; the most registers of a thread; and the allocation granule. */
const [fileRegisters, threadRegisters, granule] = [2 ** 16, 256, 8];

/**
 * The most registers that each of `threads` threads of a CTA can start with. Source: CUDA C++ Programming Guide,
 * "Compute Capabilities": 65,536 registers of an SM and of a CTA.
 */
export function mostRegisters(threads: number): number {
  return Math.min(threadRegisters, granule * Math.floor(fileRegisters / threads / granule));
}

/** The register pool of a CTA launched with this many registers for each thread; null where the number is unknown. */
export function createRegisterPool(warps: number, registers: number | null): RegisterPool {
  return {
    ofWarps: Array.from({ length: warps }, () => registers ?? NaN),
    free: registers === null ? Infinity : 0,
    changes: Array.from({ length: warps }, () => null),
  };
}

/** Registers that each thread of the warp gains; 0 where its present number is unknown. */
function growth({ cta, index }: WarpState, { registers }: SetRegisters): number {
  const owned = cta.registers.ofWarps[index];
  return Number.isNaN(owned) ? 0 : registers - owned;
}

/** Reports a second change before all warps of the warpgroup are known to have made the one before. */
function checkMeeting(machine: MachineState, warp: WarpState, { changes }: RegisterPool): void {
  const { order, index, cta } = warp;
  const before = changes[index];
  if (before === null || order === null) return;
  const first = index - (index % warpgroupWarps);
  for (const { index: other, name } of cta.warps.slice(first, first + warpgroupWarps)) {
    const change = changes[other];
    const isKnown =
      change !== null &&
      change.count >= before.count &&
      // Progress of its strand since then says nothing about the change before.
      (change.count > before.count ||
        change.at === null ||
        clockIncludes(order.clock, change.at.chain, change.at.time));
    if (isKnown) continue;
    const what = `setmaxnreg again before ${name} of its warpgroup is known to have executed the one before`;
    report(machine, warp, 'convergence', what);
    return;
  }
}

function noteChange({ changes }: RegisterPool, { index, order }: WarpState): void {
  const count = (changes[index]?.count ?? 0) + 1;
  const at =
    order === null ? null : { chain: order.chain, time: clockTime(order.clock, order.chain) };
  changes[index] = { count, at };
}

function describePool({ registers: { free } }: CtaState): string {
  return `${free} registers of a thread are free in its CTA`;
}

/**
 * `setmaxnreg`: a warp gives registers back to its CTA, or waits until it can have more. A CTA has the registers that it is
 * launched with; where the launch gives no number, only the operand and the warpgroup are checked. Source: PTX ISA,
 * `setmaxnreg`.
 */
export const registerCountRecords: InstructionRecords<'setmaxnreg'> = {
  setmaxnreg: {
    ...movesNothing,
    ready: {
      isReady: (_machine, warp, instruction) =>
        growth(warp, instruction) <= warp.cta.registers.free,
      waitsFor: (_machine, warp, instruction) =>
        `${growth(warp, instruction)} more registers a thread, and ${describePool(warp.cta)}`,
      readyTime: ({ now }) => now,
    },
    isWait: false,
    describe: ({ action, registers }) => ({ action, registers }),
    execute: (machine, warp, instruction) => {
      const { registers, action } = instruction;
      const { registers: pool } = warp.cta;
      if (!(registers >= 24 && registers <= 256 && registers % 8 === 0))
        report(machine, warp, 'instruction-shape', `setmaxnreg takes no ${registers} registers`);
      const more = growth(warp, instruction);
      if (action === 'inc' ? more < 0 : more > 0) {
        const owned = pool.ofWarps[warp.index];
        const what = `setmaxnreg.${action} to ${registers} registers of a warp that has ${owned}`;
        report(machine, warp, 'instruction-shape', what);
      }
      const { registerGroups } = machine.model;
      if (registerGroups) checkMeeting(machine, warp, pool);
      noteChange(pool, warp);
      const what = `setmaxnreg.${action}`;
      executeTogether(machine, warp, registerGroups ? `${what} ${registers}` : what);
      pool.free -= more;
      if (!Number.isNaN(pool.ofWarps[warp.index])) pool.ofWarps[warp.index] = registers;
    },
  },
};
