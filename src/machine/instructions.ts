import { bulkCopyDefinitions } from './execute/bulk-copy.js';
import type { InstructionDefinitions } from './execute/definition.js';
import { fenceDefinitions } from './execute/fences.js';
import { mbarrierDefinitions } from './execute/mbarrier.js';
import { memoryDefinitions } from './execute/memory.js';
import { tcgen05MemoryDefinitions } from './execute/tcgen05-memory.js';
import { tcgen05MmaDefinitions } from './execute/tcgen05-mma.js';
import { threadDefinitions } from './execute/threads.js';
import type { Opcode } from './instruction.js';

/**
 * What every instruction of the machine does, by its name. Instructions on registers alone are those of
 * the table in ./arithmetic.
 */
export const instructionDefinitions: InstructionDefinitions<Opcode> = {
  ...mbarrierDefinitions,
  ...threadDefinitions,
  ...fenceDefinitions,
  ...bulkCopyDefinitions,
  ...memoryDefinitions,
  ...tcgen05MmaDefinitions,
  ...tcgen05MemoryDefinitions,
};
