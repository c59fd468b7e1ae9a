import type { Fragment, Instruction } from './instruction.js';
import {
  report,
  siteOf,
  type AsynchronousOperation,
  type MachineState,
  type WarpState,
} from './state.js';

/** The fragments whose values an instruction needs, or overwrites. */
function fragmentsOf(instruction: Instruction): readonly Fragment[] {
  switch (instruction.op) {
    case 'registers':
      return instruction.reads;
    case 'tcgen05.ld':
    case 'tcgen05.st':
    case 'st.shared':
    case 'st.global':
    case 'ld.shared':
    case 'ld.global':
      return [instruction.fragment];
    default:
      return [];
  }
}

/** A warp's tcgen05.ld under way that fill registers which the instruction needs. */
export function neededLoads(
  { loads }: WarpState,
  instruction: Instruction,
): readonly AsynchronousOperation[] {
  if (loads.length === 0) return [];
  const buffers = fragmentsOf(instruction).map(({ buffer }) => buffer);
  if (buffers.length === 0) return [];
  // Loads into different parts of one buffer do not depend on one another.
  if (instruction.op === 'tcgen05.ld')
    return loads.filter(
      ({ fragment }) =>
        fragment!.buffer === instruction.fragment.buffer &&
        fragment!.byteOffset < instruction.fragment.byteOffset + instruction.fragment.byteLength &&
        instruction.fragment.byteOffset < fragment!.byteOffset + fragment!.byteLength,
    );
  return loads.filter(({ fragment }) => buffers.includes(fragment!.buffer));
}

/**
 * The instruction executes now, with registers that these loads have filled: where the hardware keeps
 * track of registers, the warp knows from it that the loads are complete; where the memory model asks
 * for tcgen05.wait::ld, its use is reported.
 */
export function useLoads(
  machine: MachineState,
  warp: WarpState,
  loads: readonly AsynchronousOperation[],
): void {
  if (loads.length === 0) return;
  const { tracker, model, step } = machine;
  if (model.registerDependencies) {
    for (const { kind, order } of loads) if (order !== null) tracker?.finish(warp, kind, order);
    warp.loads = warp.loads.filter((load) => !loads.includes(load));
  } else if (tracker !== null)
    for (const { name, site } of loads)
      report(
        machine,
        warp,
        'race',
        `registers of ${name} (${site}) are used before tcgen05.wait::ld`,
        [
          { who: `${name} of ${warp.name}`, site, step },
          { who: warp.name, site: siteOf(warp.current), step },
        ],
      );
}
