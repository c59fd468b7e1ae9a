import {
  createWarpRegisters,
  type InstructionRequest,
  type RegisterWidth,
  type ResolvedOperand,
  type Slot,
  slotBytes,
  warpInstructions,
  type WarpOperation,
  type WarpRegisters,
} from '../../../../src/ptx/instructions/index.js';
import type { Architecture } from '../../../../src/hardware/index.js';

/** A warp with registers that are made one by one. */
export interface TestWarp {
  readonly registers: WarpRegisters;
  readonly register: (width?: RegisterWidth) => Extract<ResolvedOperand, { kind: 'register' }>;
  readonly words: (operand: { readonly slot: Slot }) => Uint32Array;
}

export function createTestWarp(): TestWarp {
  const memory = new ArrayBuffer(64 * 1024);
  const registers = createWarpRegisters({ buffer: memory }, 0);
  let next = 0;
  return {
    registers,
    register: (width = 32) => {
      const slot = { offset: next, width };
      next += slotBytes(width);
      return { kind: 'register', slot, name: `%r${slot.offset}` };
    },
    words: ({ slot }) => registers.words(slot),
  };
}

export function vector(elements: readonly ResolvedOperand[]): ResolvedOperand {
  return { kind: 'vector', elements };
}

export function constant(value: number | bigint): ResolvedOperand {
  return { kind: 'constant', format: 'integer', bits: BigInt(value) };
}

/** The operation of an instruction; throws with what is unsupported. */
export function warpOperation(
  name: string,
  operands: readonly ResolvedOperand[],
  architecture: Architecture = 'sm_90',
): WarpOperation {
  const [opcode, ...modifiers] = name.split('.');
  const request: InstructionRequest = { opcode, modifiers, operands, line: 1, site: name };
  const row = warpInstructions(architecture)
    .filter((known) => name === known.name || name.startsWith(`${known.name}.`))
    .sort((a, b) => b.name.length - a.name.length)[0];
  if (row === undefined) throw new Error(`no ${name}`);
  const operation = row.lower(request);
  if ('unsupported' in operation) throw new Error(operation.unsupported);
  return operation;
}
