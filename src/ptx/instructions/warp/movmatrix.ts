import { copyOfBytes, moveBytes } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { vectorSlots, wrongOperands } from '../operands.js';
import { maskText } from './operands.js';

const form = 'sync.aligned.m8n8.trans.b16';
const size = 8;
const elementBytes = 2;

function lower({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  if (modifiers.join('.') !== form) return { unsupported: `forms other than movmatrix.${form}` };
  const [d, a, ...others] = operands.flatMap((operand) => vectorSlots(operand) ?? []);
  if (a === undefined || others.length > 0) return wrongOperands('d, a, which are registers');
  return {
    converged: 'warp',
    meaning: 'moves',
    writes: [d],
    reads: [a],
    execute: (registers, lanes) => {
      const [target] = registers.parts(d);
      const matrix = copyOfBytes(registers.parts(a)[0]);
      // A row lies in four lanes, one element behind the other.
      for (let i = 0; i < size * size; i++) {
        const transposed = (i % size) * size + Math.floor(i / size);
        moveBytes(matrix, elementBytes * transposed, target, elementBytes * i, elementBytes);
      }
      return lanes >>> 0 === 0xffffffff
        ? null
        : `only the lanes ${maskText(lanes)} execute it, and it takes all 32`;
    },
  };
}

/** `movmatrix`: an 8 × 8 matrix of 16-bit elements, a row in four lanes, transposed. */
export const movmatrix: WarpInstruction = {
  name: 'movmatrix',
  meaning: 'moves',
  evidence: 'isa',
  source: 'PTX ISA, Warp Level Matrix Instructions: movmatrix',
  lower,
};
