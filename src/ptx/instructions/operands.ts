import type { ResolvedOperand, Unsupported } from './request.js';
import type { Slot } from './slot.js';
import type { IssuingWarp } from './visible-instruction.js';
import { lowestLane, operandNumber } from './warp-registers.js';

/** The registers in operands, including those of addresses and coordinates, vectors, pairs and negations. */
export function slotsOf(operands: readonly ResolvedOperand[]): Slot[] {
  return operands.flatMap((operand) => {
    switch (operand.kind) {
      case 'register':
        return [operand.slot];
      case 'address':
        return [
          ...(operand.base === null ? [] : [operand.base]),
          ...operand.coordinates.flatMap(slotsOf),
        ];
      case 'vector':
        return slotsOf(operand.elements);
      case 'pair':
        return slotsOf([operand.first, operand.second]);
      case 'negated':
        return slotsOf([operand.operand]);
      default:
        return [];
    }
  });
}

/** The elements of a vector operand, or a scalar as the only one. */
export function elementsOf(operand: ResolvedOperand): readonly ResolvedOperand[] {
  return operand.kind === 'vector' ? operand.elements : [operand];
}

/**
 * The registers of `{a, b}`, or of `a` alone; null where one of the elements is not a register, or there is no operand.
 */
export function vectorSlots(operand: ResolvedOperand | undefined): readonly Slot[] | null {
  if (operand === undefined) return null;
  const elements = elementsOf(operand);
  const slots = elements.flatMap((element) => (element.kind === 'register' ? [element.slot] : []));
  return slots.length === elements.length ? slots : null;
}

/** The value of an operand that every form writes as an integer constant; null where it is not one. */
export function integerConstant(operand: ResolvedOperand | undefined): number | null {
  return operand?.kind === 'constant' && operand.format === 'integer' ? Number(operand.bits) : null;
}

/** The number that an operand holds in the lowest of the lanes, for operands that must be the same in all lanes. */
export function uniformNumber(warp: IssuingWarp, operand: ResolvedOperand): number {
  return operandNumber(warp.registers, operand, lowestLane(warp.lanes));
}

/**
 * Refuses an instruction with operands that the ISA does not have.
 *
 * @param takes the operands that the ISA has, as `d, [a], b`
 */
export function wrongOperands(takes: string): Unsupported {
  return { unsupported: `operands as the ISA has them: ${takes}` };
}
