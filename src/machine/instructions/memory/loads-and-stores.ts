import { allLanes, warpLanes, type AccessOrder, type InstructionOf } from '../../isa/index.js';
import { count, type Amounts } from '../../measure/index.js';
import {
  fillBytes,
  hasEqualBytes,
  moveBytes,
  type BytePlace,
  type ByteStore,
} from '../../memory/index.js';
import type { StrongAccess } from '../../ordering/index.js';
import type { CtaState } from '../../state.js';
import {
  alwaysReady,
  issueSlot,
  noMemory,
  noRegisters,
  type InstructionDetails,
  type InstructionRecords,
  type Touched,
} from '../record.js';
import { followLane, informLanes, tellLanes } from './follow-lanes.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import type { LanePlace } from './locate-place.js';

const wordBytes = 4;

type Transfer = InstructionOf<'ld' | 'st'>;

/** The ordering strength of an access: `undefined` for a weak one. */
export function strengthOf(
  { order, scope }: AccessOrder,
  isAtomic = false,
): StrongAccess | undefined {
  return order === 'weak' ? undefined : { order, scope, isAtomic };
}

/** Loads the bytes of a place into registers, from register `first` on; the last one is filled with zeros. */
export function loadPlace(
  { store, offset }: BytePlace,
  bytes: number,
  registers: ByteStore,
  first: number,
): void {
  const to = first * wordBytes;
  moveBytes(store, offset, registers, to, bytes);
  fillBytes(registers, to + bytes, registersOf(bytes) * wordBytes - bytes, 0);
}

/** Counts the bytes that lanes move, by the memory they are in and by direction. */
export interface TrafficCounter {
  readonly add: (place: LanePlace, bytes: number) => void;
  readonly end: () => void;
}

/** A counter for one instruction of a CTA; lanes mostly move parts of one allocation. */
export function createTrafficCounter(
  { counters }: CtaState,
  direction: (name: string) => string,
): TrafficCounter {
  let amounts: Amounts | null = null;
  let name = '';
  let sum = 0;
  const end = (): void => {
    if (amounts !== null && sum > 0) count(amounts, direction(name), sum);
    sum = 0;
  };
  return {
    end,
    add: ({ space, allocation }, bytes) => {
      const isGlobal = space === 'global';
      const into = isGlobal
        ? counters.globalBytes
        : space === 'shared'
          ? counters.sharedBytes
          : null;
      const what = isGlobal ? allocation!.name : 'shared memory';
      if (into !== amounts || what !== name) {
        end();
        amounts = into;
        name = what;
      }
      sum += bytes;
    },
  };
}

/** Number of a lane's registers that hold this many bytes. */
export function registersOf(bytes: number): number {
  return Math.ceil(bytes / wordBytes);
}

const registers: Touched<Transfer['op']> = {
  registers: (instruction) => [instruction.data],
  memory: noMemory,
};
const read: Touched<Transfer['op']> = {
  registers: noRegisters,
  memory: (machine, cta, instruction, visit) =>
    visitPlaces(
      machine,
      cta,
      { places: instruction, use: 'reads', strong: strengthOf(instruction) },
      visit,
    ),
};
const written: Touched<Transfer['op']> = {
  registers: noRegisters,
  memory: (machine, cta, instruction, visit) => {
    const strong = strengthOf(instruction);
    const repeats = strong === undefined && machine.hasRepeated;
    visitPlaces(machine, cta, { places: instruction, use: 'writes', strong, repeats }, visit);
  },
};

function describe({ space, bytes, order, scope }: Transfer): InstructionDetails {
  return order === 'weak' ? { space, bytes } : { space, bytes, order, scope };
}

/**
 * Loads and stores of lanes in all state spaces. They are carried out at once, in the generic proxy; a strong one
 * orders others by PTX's memory model (ordering/synchronisation.ts). Source: PTX ISA, `ld`, `st`, "Addresses as
 * Operands", "Memory Consistency Model".
 */
export const transferRecords: InstructionRecords<'ld' | 'st'> = {
  ld: {
    ready: alwaysReady,
    isWait: false,
    reads: read,
    writes: registers,
    unit: issueSlot,
    meaning: 'moves',
    describe,
    execute: (machine, warp, instruction) => {
      const { bytes, data } = instruction;
      const perLane = data.words.length / warpLanes;
      const traffic = createTrafficCounter(warp.cta, (name) => `${name} → registers`);
      const isFollowed = machine.laneOrders !== null && instruction.order === 'weak';
      forEachPlace(machine, warp, instruction, 'reads', (place, lane) => {
        loadPlace(place, bytes, data, lane * perLane);
        traffic.add(place, bytes);
        if (isFollowed) followLane(machine, warp, place, { lane, isWrite: false, bytes });
      });
      traffic.end();
      if (instruction.order !== 'weak') informLanes(machine, warp, allLanes);
    },
  },
  st: {
    ready: alwaysReady,
    isWait: false,
    reads: registers,
    writes: written,
    unit: issueSlot,
    meaning: 'moves',
    describe,
    execute: (machine, warp, instruction) => {
      const { bytes, data } = instruction;
      const traffic = createTrafficCounter(warp.cta, (name) => `registers → ${name}`);
      const isFollowed = machine.laneOrders !== null && instruction.order === 'weak';
      let repeats = machine.tracker !== null;
      forEachPlace(machine, warp, instruction, 'writes', (place, lane) => {
        const { store, offset } = place;
        const from = (lane * data.bytes.length) / warpLanes;
        repeats &&= hasEqualBytes(data, from, store, offset, bytes);
        moveBytes(data, from, store, offset, bytes);
        traffic.add(place, bytes);
        if (isFollowed) followLane(machine, warp, place, { lane, isWrite: true, bytes });
      });
      traffic.end();
      if (instruction.order !== 'weak') tellLanes(machine, warp, allLanes);
      machine.hasRepeated = repeats;
    },
  },
};
