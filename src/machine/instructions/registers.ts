import { warpLanes, type InstructionOf } from '../isa/index.js';
import { count, countInstructions } from '../measure/index.js';
import { report, type CtaState, type MachineState, type WarpState } from '../state.js';
import {
  alwaysReady,
  issueSlot,
  noDetails,
  noMemory,
  noRegisters,
  nothing,
  type InstructionRecords,
  type Touched,
  type VisitArea,
} from './record.js';

const wordBytes = 4;

type SharedInstruction = InstructionOf<'ld.shared' | 'st.shared'>;
type Transfer = InstructionOf<'ld.shared' | 'st.shared' | 'ld.global' | 'st.global'>;

/** Whether a lane has an address, and one at which it may load or store its words. */
function isLegal({ shared }: CtaState, { words, addresses }: SharedInstruction, lane: number) {
  const address = addresses[lane];
  const bytes = words * wordBytes;
  return address >= 0 && address % bytes === 0 && address + bytes <= shared.limitBytes;
}

/** Goes through the words of the lanes; reports those beyond the CTA's shared memory. */
function moveShared(
  machine: MachineState,
  warp: WarpState,
  instruction: SharedInstruction,
  move: (word: number, register: number) => void,
): void {
  const { cta } = warp;
  const { op, words, addresses, fragment, name } = instruction;
  const direction = op === 'ld.shared' ? `${name} → registers` : `registers → ${name}`;
  for (let lane = 0; lane < warpLanes; lane++) {
    const address = addresses[lane];
    if (address < 0) continue;
    if (!isLegal(cta, instruction, lane)) {
      const isMisaligned = address % (words * wordBytes) !== 0;
      const kind = isMisaligned ? 'misaligned' : 'shared-overflow';
      report(machine, warp, kind, `${name} at ${address}`);
      continue;
    }
    const first = address / wordBytes;
    for (let i = 0; i < words; i++) move(first + i, lane * (fragment.length / warpLanes) + i);
    count(cta.counters.sharedBytes, direction, words * wordBytes);
  }
}

/** Visits the words of the lanes; lanes whose words follow one another are one area. */
function visitLanes(
  _machine: MachineState,
  cta: CtaState,
  instruction: SharedInstruction,
  visit: VisitArea,
): void {
  const { words, addresses } = instruction;
  let start = -1;
  let length = 0;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isLegal(cta, instruction, lane)) continue;
    const first = addresses[lane] / wordBytes;
    if (length > 0 && first !== start + length) {
      visit({ space: 'shared', cta, start, count: length });
      length = 0;
    }
    if (length === 0) start = first;
    length += words;
  }
  if (length > 0) visit({ space: 'shared', cta, start, count: length });
}

const fragmentOf = ({ fragment }: Transfer) => [fragment];
const lanesOfShared: Touched<'ld.shared' | 'st.shared'> = {
  registers: noRegisters,
  memory: visitLanes,
};
const registersOfTransfer: Touched<'ld.shared' | 'st.shared' | 'ld.global' | 'st.global'> = {
  registers: fragmentOf,
  memory: noMemory,
};

/**
 * Loads and stores of registers, and code on registers alone. They are carried out at once, in the
 * generic proxy. Source: PTX ISA, `ld`, `st`.
 */
export const registerRecords: InstructionRecords<
  'ld.shared' | 'st.shared' | 'ld.global' | 'st.global' | 'registers'
> = {
  'ld.shared': {
    ready: alwaysReady,
    isWait: false,
    reads: lanesOfShared,
    writes: registersOfTransfer,
    unit: issueSlot,
    describe: noDetails,
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
    ready: alwaysReady,
    isWait: false,
    reads: registersOfTransfer,
    writes: lanesOfShared,
    unit: issueSlot,
    describe: noDetails,
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
    ready: alwaysReady,
    isWait: false,
    reads: nothing,
    writes: registersOfTransfer,
    unit: issueSlot,
    describe: noDetails,
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < warpLanes; lane++)
        if (addresses[lane] >= 0) {
          fragment[lane] = memory[addresses[lane]];
          count(cta.counters.globalBytes, `${name} → registers`, wordBytes);
        }
    },
  },
  'st.global': {
    ready: alwaysReady,
    isWait: false,
    reads: registersOfTransfer,
    writes: nothing,
    unit: issueSlot,
    describe: noDetails,
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < warpLanes; lane++)
        if (addresses[lane] >= 0) {
          memory[addresses[lane]] = fragment[lane];
          count(cta.counters.globalBytes, `registers → ${name}`, wordBytes);
        }
    },
  },
  registers: {
    ready: alwaysReady,
    isWait: false,
    // Fragments that it overwrites are among them.
    reads: { registers: ({ reads }) => reads, memory: noMemory },
    writes: nothing,
    // Its code keeps the arithmetic units busy, according to the instructions that it reports as
    // issued.
    unit: issueSlot,
    describe: noDetails,
    execute: (machine, warp, { execute }) => {
      const issues = execute();
      countInstructions(warp.cta.counters.instructions, issues);
      warp.readyAt = machine.occupancy?.runRegisters(warp, machine.now, issues) ?? machine.now;
    },
  },
};
