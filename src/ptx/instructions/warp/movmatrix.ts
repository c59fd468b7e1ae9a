import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { gather, layoutOfA, scatter } from './mma-fragment.js';
import { vectorSlots, wrongOperands } from '../operands.js';
import { maskText } from './operands.js';

const size = 8;
const form = 'sync.aligned.m8n8.trans.b16';

function lower({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  if (modifiers.join('.') !== form) return { unsupported: `forms other than movmatrix.${form}` };
  const [d, a, ...others] = operands.flatMap((operand) => vectorSlots(operand) ?? []);
  if (a === undefined || others.length > 0) return wrongOperands('d, a, which are registers');
  const layout = layoutOfA(size, size, 16);
  const matrix = new Uint16Array(size * size);
  return {
    converged: 'warp',
    writes: [d],
    reads: [a],
    execute: (registers, lanes) => {
      gather(registers, [a], layout, matrix);
      const transposed = matrix.map((_, i) => matrix[(i % size) * size + Math.floor(i / size)]);
      scatter(registers, [d], layout, transposed);
      return lanes >>> 0 === 0xffffffff
        ? null
        : `only the lanes ${maskText(lanes)} execute it, and it takes all 32`;
    },
  };
}

/** `movmatrix`: an 8 × 8 matrix of 16-bit elements, a row in four lanes, transposed. */
export const movmatrix: WarpInstruction = {
  name: 'movmatrix',
  evidence: 'isa',
  source: 'PTX ISA, Warp Level Matrix Instructions: movmatrix',
  lower,
};
