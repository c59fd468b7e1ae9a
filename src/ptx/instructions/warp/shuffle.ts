import { createByteStore, moveBytes, warpLanes } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { slotsOf, wrongOperands } from '../operands.js';
import {
  destinationsOf,
  lanesOf,
  maskText,
  readerOf,
  valueReaderOf,
  valueWriterOf,
  writerOf,
} from './operands.js';

const wordBytes = 4;

/** A word of each lane, one behind the other. */
function createValues() {
  const store = createByteStore(wordBytes * warpLanes);
  return { store, offset: 0, stride: wordBytes, bytes: wordBytes };
}

/** The lane whose value a lane takes, and whether that lane is in range. */
interface Choice {
  readonly from: number;
  readonly isInRange: boolean;
}

/** The lanes of a segment of the warp: bits 8 to 12 of c fix bits of the lane, bits 0 to 4 clamp the others. */
function segmentOf(
  lane: number,
  c: number,
): { readonly first: number; readonly last: number; readonly fixed: number } {
  const fixed = (c >>> 8) & 31;
  const first = lane & fixed;
  return { first, last: first | (c & 31 & ~fixed), fixed };
}

/** The modes of `shfl.sync`. Source: PTX ISA, instruction `shfl.sync`. */
const modes: Readonly<Record<string, (lane: number, b: number, c: number) => Choice>> = {
  up: (lane, b, c) => {
    const from = lane - b;
    return { from, isInRange: from >= segmentOf(lane, c).last };
  },
  down: (lane, b, c) => {
    const from = lane + b;
    return { from, isInRange: from <= segmentOf(lane, c).last };
  },
  bfly: (lane, b, c) => {
    const from = lane ^ b;
    return { from, isInRange: from <= segmentOf(lane, c).last };
  },
  idx: (lane, b, c) => {
    const { first, last, fixed } = segmentOf(lane, c);
    const from = first | (b & ~fixed);
    return { from, isInRange: from <= last };
  },
};

function lower({ modifiers, operands }: InstructionRequest): WarpOperation | Unsupported {
  const choose = modes[modifiers[1]];
  if (choose === undefined || modifiers[2] !== 'b32')
    return { unsupported: `modes other than ${Object.keys(modes).join(', ')} of b32` };
  const [result, inRange = null] = destinationsOf(operands[0]);
  const writeResult = valueWriterOf(result);
  const writeInRange = inRange === null ? () => {} : writerOf(inRange);
  const read = valueReaderOf(operands[1]);
  const [readB, readC, readMask] = operands.slice(2).map(readerOf);
  if (!writeResult || !writeInRange || !read || !readB || !readC || !readMask)
    return wrongOperands('d|p, a, b, c, membermask');
  const [values, taken] = [createValues(), createValues()];
  return {
    converged: { maskOperand: 4 },
    meaning: 'moves',
    writes: slotsOf(operands.slice(0, 1)),
    reads: slotsOf(operands.slice(1)),
    execute: (registers, lanes) => {
      read(registers, values);
      let finding: string | null = null;
      for (const lane of lanesOf(lanes)) {
        const mask = readMask(registers, lane);
        const choice = choose(lane, readB(registers, lane) & 31, readC(registers, lane));
        const from = choice.isInRange ? choice.from : lane;
        const inMask = (which: number): boolean => ((mask >>> which) & 1) === 1;
        if (!inMask(lane)) finding ??= `lane ${lane} is not in its membermask ${maskText(mask)}`;
        else if (!inMask(from) || ((lanes >>> from) & 1) === 0)
          finding ??= `lane ${lane} takes the value of lane ${from}, which does not execute it (membermask ${maskText(mask)})`;
        moveBytes(values.store, wordBytes * from, taken.store, wordBytes * lane, wordBytes);
        writeInRange(registers, lane, choice.isInRange ? 1 : 0);
      }
      writeResult(registers, taken, lanes);
      return finding;
    },
  };
}

/**
 * `shfl.sync`: each lane takes the value of another lane of its segment, or keeps its own where that is
 * out of range (whether it is, the predicate says, which no value decides). A value of a lane that does not take part is a finding, and then the value of its
 * register.
 */
export const shuffle: WarpInstruction = {
  name: 'shfl.sync',
  meaning: 'moves',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: shfl.sync',
  lower,
};
