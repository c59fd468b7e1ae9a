import { addressSpaceOf, splitClusterAddress } from '../../machine/index.js';
import type { InstructionRequest, ResolvedOperand } from './request.js';
import type { IssuingWarp } from './visible-instruction.js';
import { hasLane, laneAddresses } from './warp-registers.js';

/** Lanes with the same address of shared memory. */
export interface LaneGroup {
  readonly lanes: number;
  /** The cluster address: rank and offset. */
  readonly address: number;
}

/** Whether modifiers name a part of shared memory; otherwise the address is generic. */
function namesShared(modifiers: readonly string[]): boolean {
  return modifiers.some((modifier) => /^shared(::cta|::cluster)?$/.test(modifier));
}

/**
 * The addresses of shared memory that lanes name, as cluster addresses, the lowest lane's first. A generic address
 * outside of shared memory gives an address of no CTA, which the machine reports.
 */
export function sharedAddresses(
  warp: IssuingWarp,
  { modifiers }: Pick<InstructionRequest, 'modifiers'>,
  operand: ResolvedOperand,
): LaneGroup[] {
  if (operand.kind !== 'address') throw new Error('no address');
  const isGeneric = !namesShared(modifiers) && operand.space === null;
  const addresses = laneAddresses(warp.registers, operand, warp.lanes);
  const groups = new Map<number, number>();
  for (let lane = 0; lane < addresses.length; lane++) {
    if (!hasLane(warp.lanes, lane)) continue;
    const found = isGeneric ? addressSpaceOf(addresses[lane]) : null;
    const address =
      found === null ? addresses[lane] : found.space === 'shared' ? found.address : -1;
    groups.set(address, ((groups.get(address) ?? 0) | (1 << lane)) >>> 0);
  }
  return [...groups].map(([address, lanes]) => ({ address, lanes }));
}

/** The offset in the warp's own CTA; the address itself for an address of another CTA, which no warp has. */
export function ownOffset(warp: IssuingWarp, address: number): number {
  const { rank, offset } = splitClusterAddress(address);
  return rank === warp.cta ? offset : address;
}

/** The ranks of a mask of CTAs. */
export function ranksOf(mask: number): readonly number[] {
  return Array.from({ length: 16 }, (_, rank) => rank).filter((rank) => hasLane(mask, rank));
}
