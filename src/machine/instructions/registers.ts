import { warpLanes, type InstructionOf } from '../isa/index.js';
import { count, countInstructions } from '../measure/index.js';
import { moveBytes } from '../memory/index.js';
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

/** Calls `move` with the first byte of each lane in shared memory and in the fragment; reports lanes beyond the CTA's shared memory. */
function moveShared(
  machine: MachineState,
  warp: WarpState,
  instruction: SharedInstruction,
  move: (inShared: number, inFragment: number, bytes: number) => void,
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
    move(address, (lane * fragment.bytes.length) / warpLanes, words * wordBytes);
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
    meaning: 'moves',
    describe: noDetails,
    execute: (machine, warp, instruction) => {
      const { store } = warp.cta.shared;
      moveShared(machine, warp, instruction, (from, to, bytes) =>
        moveBytes(store, from, instruction.fragment, to, bytes),
      );
    },
  },
  'st.shared': {
    ready: alwaysReady,
    isWait: false,
    reads: registersOfTransfer,
    writes: lanesOfShared,
    unit: issueSlot,
    meaning: 'moves',
    describe: noDetails,
    execute: (machine, warp, instruction) => {
      const { store } = warp.cta.shared;
      moveShared(machine, warp, instruction, (to, from, bytes) =>
        moveBytes(instruction.fragment, from, store, to, bytes),
      );
    },
  },
  'ld.global': {
    ready: alwaysReady,
    isWait: false,
    reads: nothing,
    writes: registersOfTransfer,
    unit: issueSlot,
    meaning: 'moves',
    describe: noDetails,
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < warpLanes; lane++)
        if (addresses[lane] >= 0) {
          moveBytes(memory, wordBytes * addresses[lane], fragment, wordBytes * lane, wordBytes);
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
    meaning: 'moves',
    describe: noDetails,
    execute: (_machine, { cta }, { memory, addresses, fragment, name }) => {
      for (let lane = 0; lane < warpLanes; lane++)
        if (addresses[lane] >= 0) {
          moveBytes(fragment, wordBytes * lane, memory, wordBytes * addresses[lane], wordBytes);
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
    // Only its instructions mean anything, and rows of src/isa say what.
    meaning: 'loses',
    describe: noDetails,
    execute: (machine, warp, { execute }) => {
      const issues = execute();
      countInstructions(warp.cta.counters.instructions, issues);
      warp.readyAt = machine.occupancy?.runRegisters(warp, machine.now, issues) ?? machine.now;
    },
  },
};
