import { findTensorCoreArithmetic, type TensorCoreArchitecture } from '../hardware/index.js';
import { RequestError } from '../request-error.js';
import { createMmaUnit, type MmaInstruction, type MmaUnit } from './tensor-core/index.js';

/** The tensor cores of an architecture, by the formats of their operands. */
export interface MmaUnits {
  /** The unit for an instruction, or why there is none. */
  readonly find: (instruction: MmaInstruction) => MmaUnit | string;
}

const instructions = {
  sm_90: 'wgmma',
  sm_100: 'tcgen05.mma',
  sm_103: 'tcgen05.mma',
} as const satisfies Partial<Record<TensorCoreArchitecture, string>>;

/** The architectures whose arithmetic the machine can be given; sm_90's is that of its wgmma. */
export type MachineArchitecture = keyof typeof instructions;

/** Tensor cores with an architecture's arithmetic. They keep the memory of the tiles that they met. */
export function createMmaUnits(architecture: MachineArchitecture): MmaUnits {
  const units = new Map<string, MmaUnit | string>();
  const create = ({ a, b }: MmaInstruction): MmaUnit | string => {
    try {
      const instruction = instructions[architecture];
      return createMmaUnit(findTensorCoreArithmetic({ instruction, architecture, a, b }));
    } catch (error) {
      if (error instanceof RequestError) return error.message;
      throw error;
    }
  };
  return {
    find: (instruction) => {
      const key = `${instruction.a} ${instruction.b}`;
      const unit = units.get(key) ?? create(instruction);
      units.set(key, unit);
      return unit;
    },
  };
}
