import { addressSpaceOf, clusterAddress, splitClusterAddress } from '../../../machine/index.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { Slot } from '../slot.js';
import type { IssuingWarp } from '../visible-instruction.js';
import { hasLane, laneAddresses, lowestLane, operandNumber } from '../warp-registers.js';

/** The registers among operands. */
export function registersOf(operands: readonly ResolvedOperand[]): Slot[] {
  return operands.flatMap((operand) => {
    switch (operand.kind) {
      case 'register':
        return [operand.slot];
      case 'address':
        return [
          ...(operand.base === null ? [] : [operand.base]),
          ...operand.coordinates.flatMap(registersOf),
        ];
      case 'vector':
        return registersOf(operand.elements);
      case 'pair':
        return [...registersOf([operand.first]), ...registersOf([operand.second])];
      case 'negated':
        return registersOf([operand.operand]);
      default:
        return [];
    }
  });
}

/** What an operand holds in the lowest of the lanes: of what has to be the same in all of them. */
export function uniformNumber(warp: IssuingWarp, operand: ResolvedOperand): number {
  return operandNumber(warp.registers, operand, lowestLane(warp.lanes));
}

/** Lanes with the same address of shared memory. */
export interface LaneGroup {
  readonly lanes: number;
  /** As a cluster address: rank and offset. */
  readonly address: number;
}

/** Whether modifiers name a part of shared memory; else the address is generic. */
function namesShared(modifiers: readonly string[]): boolean {
  return modifiers.some((modifier) => /^shared(::cta|::cluster)?$/.test(modifier));
}

/**
 * The addresses of shared memory that lanes name, as cluster addresses, the lowest lane's first. A generic address of no
 * shared memory gives one of no CTA, which the machine reports.
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

/** The offset in the warp's own CTA; as it is for an address of another, which nobody has. */
export function ownOffset(warp: IssuingWarp, address: number): number {
  const { rank, offset } = splitClusterAddress(address);
  return rank === warp.cta ? offset : address;
}

export { clusterAddress };

/** Takes an instruction with operands that the ISA does not have. */
export function wrongOperands(takes: string): Unsupported {
  return { unsupported: `operands as the ISA has them: ${takes}` };
}
