import type { Slot } from '../slot.js';
import type { ResolvedOperand } from '../request.js';
import { hasLane } from '../warp-registers.js';

/** The registers of a list of operands `{a, b}`, or of one register; null where one is none. */
export function slotsOfVector(operand: ResolvedOperand | undefined): readonly Slot[] | null {
  const elements = operand?.kind === 'vector' ? operand.elements : [operand];
  const slots = elements.flatMap((element) => (element?.kind === 'register' ? [element.slot] : []));
  return slots.length === elements.length ? slots : null;
}

/** The number after a prefix among modifiers, as 2 of `cta_group::2`; null where there is none. */
export function numberAfter(modifiers: readonly string[], prefix: string): number | null {
  const modifier = modifiers.find((one) => one.startsWith(prefix));
  return modifier === undefined ? null : Number(modifier.slice(prefix.length));
}

/** What a modifier says after a prefix, as `f16` of `kind::f16`; null where there is none. */
export function wordAfter(modifiers: readonly string[], prefix: string): string | null {
  return modifiers.find((one) => one.startsWith(prefix))?.slice(prefix.length) ?? null;
}

/** The ranks of a mask of CTAs. */
export function ranksOf(mask: number): readonly number[] {
  return Array.from({ length: 16 }, (_, rank) => rank).filter((rank) => hasLane(mask, rank));
}
