import { warpLanes, type InstructionOf, type LanePlaces } from '../../isa/index.js';
import { count } from '../../measure/index.js';
import { fillBytes, hasEqualBytes, moveBytes } from '../../memory/index.js';
import {
  alwaysReady,
  issueSlot,
  noMemory,
  noRegisters,
  type InstructionRecords,
  type Touched,
} from '../record.js';
import type { MachineState, WarpState } from '../../state.js';
import { followLane } from './follow-lanes.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import type { LanePlace } from './locate-place.js';

type Op = 'ldmatrix' | 'stmatrix';
type MatrixTransfer = InstructionOf<Op>;

/** A matrix has 8 rows of 8 elements of 16 bits. */
const matrixRows = 8;
const [elementBytes, wordBytes] = [2, 4];

/**
 * Location of a matrix element in registers: lane 4r + c / 2 has the elements c and c + 1 of row r in its
 * register, the first in the low half. Source: PTX ISA, "ldmatrix", figure of the fragment of 8×8 elements.
 */
function registerOf(row: number, column: number): { readonly lane: number; readonly half: number } {
  return { lane: 4 * row + (column >> 1), half: column & 1 };
}

/** The lanes whose addresses are used: those of others are not looked at. */
function rowsOf({ rows, matrices }: MatrixTransfer): LanePlaces {
  return {
    ...rows,
    addresses: rows.addresses.map((address, lane) => (lane < matrixRows * matrices ? address : -1)),
  };
}

/**
 * Goes through the pieces of a row that lie together in registers, one element or two: the first byte of each in the row, and
 * among the registers of all lanes.
 */
function forEachPiece(
  { matrices, isTransposed }: MatrixTransfer,
  row: number,
  visit: (inRow: number, inData: number, bytes: number) => void,
): void {
  const matrix = Math.floor(row / matrixRows);
  const rowOfMatrix = row % matrixRows;
  const elements = isTransposed ? 1 : 2;
  for (let column = 0; column < matrixRows; column += elements) {
    const { lane, half } = isTransposed
      ? registerOf(column, rowOfMatrix)
      : registerOf(rowOfMatrix, column);
    const inData = wordBytes * (lane * matrices + matrix) + elementBytes * half;
    visit(elementBytes * column, inData, elementBytes * elements);
  }
}

/** Reports the lanes whose registers hold the elements of a row. */
function followRow(
  machine: MachineState,
  warp: WarpState,
  instruction: MatrixTransfer,
  { place, row, isWrite }: { place: LanePlace; row: number; isWrite: boolean },
): void {
  if (machine.laneOrders === null) return;
  forEachPiece(instruction, row, (inRow, inData, bytes) => {
    const lane = Math.floor(inData / (wordBytes * instruction.matrices));
    for (let byte = inRow; byte < inRow + bytes; byte += elementBytes) {
      const element = { ...place, offset: place.offset + byte };
      followLane(machine, warp, element, { lane, isWrite, bytes: elementBytes });
    }
  });
}

const registers: Touched<Op> = {
  registers: (instruction) => [instruction.data],
  memory: noMemory,
};
const rowsRead: Touched<Op> = {
  registers: noRegisters,
  memory: (machine, cta, instruction, visit) =>
    visitPlaces(machine, cta, { places: rowsOf(instruction), use: 'reads' }, visit),
};
const rowsWritten: Touched<Op> = {
  registers: noRegisters,
  memory: (machine, cta, instruction, visit) =>
    visitPlaces(
      machine,
      cta,
      { places: rowsOf(instruction), use: 'writes', repeats: machine.hasRepeated },
      visit,
    ),
};
const describe = ({ matrices, isTransposed }: MatrixTransfer) => ({ matrices, isTransposed });

/**
 * Loads and stores of matrices of 8×8 elements of 16 bits, one to four by all lanes of a warp together. Source:
 * PTX ISA, `ldmatrix`, `stmatrix`.
 */
export const matrixTransferRecords: InstructionRecords<Op> = {
  ldmatrix: {
    ready: alwaysReady,
    isWait: false,
    reads: rowsRead,
    writes: registers,
    unit: issueSlot,
    meaning: 'moves',
    describe,
    execute: (machine, warp, instruction) => {
      const places = rowsOf(instruction);
      const { data } = instruction;
      fillBytes(data, 0, data.bytes.length, 0);
      forEachPlace(machine, warp, places, 'reads', (place, row) => {
        const { store, offset } = place;
        forEachPiece(instruction, row, (inRow, inData, bytes) =>
          moveBytes(store, offset + inRow, data, inData, bytes),
        );
        followRow(machine, warp, instruction, { place, row, isWrite: false });
      });
      const { counters } = warp.cta;
      count(
        counters.sharedBytes,
        'shared memory → registers',
        warpLanes * 4 * instruction.matrices,
      );
    },
  },
  stmatrix: {
    ready: alwaysReady,
    isWait: false,
    reads: registers,
    writes: rowsWritten,
    unit: issueSlot,
    meaning: 'moves',
    describe,
    execute: (machine, warp, instruction) => {
      const places = rowsOf(instruction);
      const { data } = instruction;
      let repeats = true;
      forEachPlace(machine, warp, places, 'writes', (place, row) => {
        const { store, offset } = place;
        forEachPiece(instruction, row, (inRow, inData, bytes) => {
          repeats &&= hasEqualBytes(data, inData, store, offset + inRow, bytes);
          moveBytes(data, inData, store, offset + inRow, bytes);
        });
        followRow(machine, warp, instruction, { place, row, isWrite: true });
      });
      machine.hasRepeated = repeats;
      const { counters } = warp.cta;
      count(
        counters.sharedBytes,
        'registers → shared memory',
        warpLanes * 4 * instruction.matrices,
      );
    },
  },
};
