import type { ByteStore, ValueTracer } from '../../machine/index.js';
import type { Slot, WarpRegisters } from '../instructions/index.js';
import type { Item, LaneOperation, Program, RunOperations } from '../program/index.js';

/** The memory with all warps' registers and the planes of their tags. */
export interface TracedMemory {
  readonly words: Uint32Array;
  /** Bytes from a register to its place in the first plane, and from each plane to the next. */
  readonly planeBytes: number;
}

/** Runs an operation for the lanes of a mask and follows what its results stand for. */
export type TracedOperation = (registers: number, lanes: number) => void;

/** Follows what the values of a launch stand for, in registers as in memory. */
export interface LaneTracer extends ValueTracer {
  /** Takes note of the launch's tensors, before it runs: their bytes in global memory. */
  readonly begin: (tensors: ReadonlyMap<string, ByteStore>) => void;
  /** The operation `run` with what it does to tags. Its guard has been taken from the lanes. */
  readonly operation: (
    operation: LaneOperation,
    run: RunOperations,
    memory: TracedMemory,
  ) => TracedOperation;
  /** Notes that an instruction has decided by values, for lanes of a mask: nothing where none of them has a tag. */
  readonly decide: (
    registers: WarpRegisters,
    reads: readonly Slot[],
    lanes: number,
    site: string,
  ) => void;
  /** Notes that registers are lost that an instruction has written, if one that it has read has a tag in some lane. */
  readonly loseRegisters: (
    registers: WarpRegisters,
    slots: { readonly reads: readonly Slot[]; readonly writes: readonly Slot[] },
    lanes: number,
    site: string,
  ) => void;
  /** Takes note that a visible instruction of a warp (by its number in its CTA) has written registers, as a load does. */
  readonly read?: (
    registers: WarpRegisters,
    writes: readonly Slot[],
    lanes: number,
    warp: number,
    site: string,
  ) => void;
  /** Takes note that all clusters that have started have ended: only what lies in global memory goes on. */
  readonly clustersEnded: () => void;
}

/** Whether an operation makes a floating-point number, whose real value may differ from its bits even if no operand has a tag. */
function makesNumber({ instruction: { name, meaning } }: LaneOperation): boolean {
  return (
    meaning === 'is' && /\.(?:b?f(?:16|32|64)(?:x2)?|e[235]m[0-9]+x[24]|tf32)(?:\.|$)/.test(name)
  );
}

function slotsOf({ destinations }: LaneOperation): readonly Slot[] {
  return destinations.filter((slot) => slot !== null && slot.width !== 'pred') as readonly Slot[];
}

/** Offsets of the registers that an item may give values with tags, by itself. */
function sourcesOfTags(item: Item): readonly number[] {
  switch (item.kind) {
    case 'lanes':
      return item.operations
        .filter(makesNumber)
        .flatMap(slotsOf)
        .map(({ offset }) => offset);
    case 'visible':
      return [...item.operation.writes, ...item.operation.lends.flat()].map(({ offset }) => offset);
    case 'warp':
      return item.operation.writes.map(({ offset }) => offset);
    case 'call':
      return [...item.arguments, ...item.results].map(({ to }) => to.offset);
    case 'count':
    case 'trap':
      return [];
  }
}

/**
 * Whether an operation may touch values with tags, by the registers that ever have some: those that are loaded, that
 * arithmetic writes, and that are made from such. The others run as if nobody followed them.
 */
export function findTraced(functions: Program['functions']): (operation: LaneOperation) => boolean {
  const items = functions.flatMap(({ blocks }) => blocks.flatMap((block) => block.items));
  const tagged = new Set(items.flatMap(sourcesOfTags));
  const operations = items.flatMap((item) => (item.kind === 'lanes' ? item.operations : []));
  const readsTag = ({ sources }: LaneOperation) =>
    sources.some((source) => 'offset' in source && tagged.has(source.offset));
  let before: number;
  do {
    before = tagged.size;
    for (const operation of operations)
      if (operation.instruction.meaning !== 'decides' && readsTag(operation))
        for (const { offset } of slotsOf(operation)) tagged.add(offset);
  } while (tagged.size > before);
  const writesTag = (operation: LaneOperation) =>
    slotsOf(operation).some(({ offset }) => tagged.has(offset));
  return (operation) => readsTag(operation) || writesTag(operation);
}
