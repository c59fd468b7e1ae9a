import { columnOf } from '../memory/index.js';
import type { Instruction } from '../instruction.js';

/** What a trace shows beside an instruction's place in the program. */
export type InstructionDetails = Readonly<Record<string, string | number | boolean>>;

/**
 * The operands of an instruction that tell it from others of the same place: shapes, columns of tensor
 * memory, coordinates, barriers by their offset in shared memory. Nothing for code on registers.
 */
export function describeInstruction(instruction: Instruction): InstructionDetails {
  const { op } = instruction;
  switch (op) {
    case 'tcgen05.mma': {
      const { shape, a, b, aOperand, d, accumulate, group, names } = instruction;
      return {
        op,
        product: `${names.d} = ${names.a} · ${names.b}`,
        accumulate,
        group,
        shape: `${shape.m} × ${shape.n} × ${shape.k}`,
        operands: a === b ? a : `${a}, ${b}`,
        a: aOperand.space === 'shared' ? 'shared memory' : 'tensor memory',
        column: columnOf(d),
      };
    }
    case 'tcgen05.ld':
    case 'tcgen05.st': {
      const { address, name, transfer } = instruction;
      return { op, name, column: columnOf(address), repeat: transfer.repeat };
    }
    case 'tcgen05.commit': {
      const { barrier, ctas } = instruction;
      return { op, barrier, ctas: ctas.join(', ') };
    }
    case 'cp.async.bulk.tensor.shared.global':
    case 'cp.async.bulk.tensor.global.shared': {
      const { name, coordinates, map } = instruction;
      return { op, name, coordinates: coordinates.join(', '), bytes: map.boxBytes };
    }
    case 'mbarrier.try_wait.parity': {
      const { barrier, parity } = instruction;
      return { op, barrier, parity };
    }
    case 'mbarrier.arrive':
      return { op, barrier: instruction.barrier, threads: instruction.threads };
    case 'mbarrier.arrive.expect_tx':
      return { op, barrier: instruction.barrier, bytes: instruction.bytes };
    case 'bar.sync':
    case 'bar.arrive':
      return { op, barrier: instruction.barrier, threads: instruction.threads };
    default:
      return { op };
  }
}
