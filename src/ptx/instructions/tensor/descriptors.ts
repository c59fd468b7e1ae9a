import {
  decodeMatrixDescriptor,
  type DecodedDescriptor,
  type MatrixDescriptor,
} from '../../../machine/index.js';
import type { ResolvedOperand } from '../request.js';
import type { IssuingWarp } from '../visible-instruction.js';
import { operandBits } from '../warp-registers.js';

/** The matrix in shared memory that a lane's descriptor of 64 bits describes, or the fault of the descriptor. */
export function matrixDescriptorOf(
  { registers }: IssuingWarp,
  operand: ResolvedOperand,
  lane: number,
  major: MatrixDescriptor['major'],
): DecodedDescriptor {
  return decodeMatrixDescriptor(operandBits(registers, operand, lane), major);
}
