import type { WarpRegisters } from '../warp-registers.js';
import { type LaneReader, lanesOf, maskText } from './operands.js';

/** Lanes that execute an instruction together, and their faults. */
export interface MemberGroups {
  /** The executing lanes of each mask, as masks. */
  readonly groups: readonly { readonly mask: number; readonly members: number }[];
  readonly finding: string | null;
}

/**
 * Divides the lanes that execute a `.sync` instruction by their membermask: lanes of different masks do
 * not see each other. A lane that is not in its own mask, and a mask that names lanes which do not
 * execute the instruction, are findings (PTX ISA: the behaviour is undefined).
 */
export function memberGroups(
  registers: WarpRegisters,
  lanes: number,
  maskOf: LaneReader,
): MemberGroups {
  const members = new Map<number, number>();
  let finding: string | null = null;
  for (const lane of lanesOf(lanes)) {
    const mask = maskOf(registers, lane);
    if (((mask >>> lane) & 1) === 0)
      finding ??= `lane ${lane} is not in its membermask ${maskText(mask)}`;
    members.set(mask, ((members.get(mask) ?? 0) | (1 << lane)) >>> 0);
  }
  const groups = [...members].map(([mask, present]) => ({ mask, members: present }));
  for (const { mask, members: present } of groups) {
    const missing = (mask & ~present) >>> 0;
    if (missing !== 0)
      finding ??= `the membermask ${maskText(mask)} names lanes that do not execute it: ${maskText(missing)}`;
  }
  return { groups, finding };
}
