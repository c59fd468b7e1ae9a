import { count, countInstructions } from '../counters.js';
import { report, type MachineState, type WarpState } from '../state.js';
import type { InstructionDefinitions } from './definition.js';
import type { InstructionOf } from '../instruction.js';

const lanes = 32;
const wordBytes = 4;

type SharedInstruction = InstructionOf<'ld.shared'> | InstructionOf<'st.shared'>;

/** Goes through the lanes' runs of words; reports those beyond the CTA's shared memory. */
function moveShared(
  machine: MachineState,
  warp: WarpState,
  { op, words, addresses, fragment, name }: SharedInstruction,
  move: (word: number, register: number) => void,
): void {
  const { cta } = warp;
  const isLoad = op === 'ld.shared';
  const kind = isLoad ? 'read' : 'write';
  const direction = isLoad ? `${name} → registers` : `registers → ${name}`;
  // Lanes whose words follow one another are one access.
  let start = -1;
  let length = 0;
  const access = (): void => {
    if (length > 0)
      machine.tracker?.access(
        machine,
        { warp, order: null },
        { space: 'shared', cta, kind, start, count: length },
      );
    length = 0;
  };
  for (let lane = 0; lane < lanes; lane++) {
    const address = addresses[lane];
    if (address < 0) continue;
    if (address % (words * wordBytes) !== 0) {
      report(machine, warp, 'misaligned', `${name} at ${address}`);
      continue;
    }
    if (address + words * wordBytes > cta.shared.limitBytes) {
      report(machine, warp, 'shared-overflow', `${name} at ${address}`);
      continue;
    }
    const first = address / wordBytes;
    for (let i = 0; i < words; i++) move(first + i, lane * (fragment.length / lanes) + i);
    count(cta.counters.sharedBytes, direction, words * wordBytes);
    if (first !== start + length) access();
    if (length === 0) start = first;
    length += words;
  }
  access();
}

/**
 * Loads and stores of registers, and code on registers alone. They are carried out at once, in the
 * generic proxy. Source: PTX ISA, `ld`, `st`.
 */
export const memoryDefinitions: InstructionDefinitions<
  'ld.shared' | 'st.shared' | 'ld.global' | 'st.global' | 'registers'
> = {
  'ld.shared': {
    execute: (machine, warp, instruction) => {
      const { words } = warp.cta.shared;
      const { fragment } = instruction;
      moveShared(
        machine,
        warp,
        instruction,
        (word, register) => (fragment[register] = words[word]),
      );
    },
  },
  'st.shared': {
    execute: (machine, warp, instruction) => {
      const { words } = warp.cta.shared;
      const { fragment } = instruction;
      moveShared(
        machine,
        warp,
        instruction,
        (word, register) => (words[word] = fragment[register]),
      );
    },
  },
  'ld.global': {
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < lanes; lane++)
        if (addresses[lane] >= 0) {
          fragment[lane] = memory[addresses[lane]];
          count(cta.counters.globalBytes, `${name} → registers`, wordBytes);
        }
    },
  },
  'st.global': {
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < lanes; lane++)
        if (addresses[lane] >= 0) {
          memory[addresses[lane]] = fragment[lane];
          count(cta.counters.globalBytes, `registers → ${name}`, wordBytes);
        }
    },
  },
  registers: {
    execute: (machine, warp, { execute }) => {
      const issues = execute();
      countInstructions(warp.cta.counters.instructions, issues);
      warp.readyAt = machine.occupancy?.runRegisters(warp, machine.now, issues) ?? machine.now;
    },
  },
};
