import { type ByteStore, fillBytes, moveBytes } from './byte-store.js';
import {
  checkColumns,
  columnOf,
  laneOf,
  tensorMemoryColumns,
  type TensorMemoryRectangle,
} from './tensor-memory.js';
import { type MemoryViolation, requireLegal } from './shared-memory.js';

const wordBytes = 4;
/** Bytes that `.pack::16b` and `.unpack::16b` move from or to a word of tensor memory. */
const halfBytes = 2;

/** The shapes of tcgen05.ld and tcgen05.st, as PTX spells them. */
export type TensorMemoryShape = '32x32b' | '16x64b' | '16x128b' | '16x256b' | '16x32bx2';

/** Layout of a shape's words in tensor memory and in registers. */
export interface FragmentLayout {
  readonly lanes: 16 | 32;
  /** Columns of one repeat; of each half for 16x32bx2. */
  readonly columns: number;
  /** Registers of each thread for one repeat. */
  readonly registers: number;
  /** The largest N of .xN, a power of two; 1 and all powers of two between exist. */
  readonly mostRepeats: number;
  /** The lane, from that of the address on, of a register of a thread. */
  readonly lane: (thread: number, register: number) => number;
  /**
   * The column, from that of the address on, of a register of a thread; without the distance of the
   * upper half of 16x32bx2.
   */
  readonly column: (thread: number, register: number) => number;
  /** Whether threads 16 to 31 begin at a column of their own, the immHalfSplitoff of 16x32bx2. */
  readonly isSplit: boolean;
}

/**
 * The shapes. Sources: PTX ISA 9.2, "Data Movement Shape" (section 9.7.16.2.3, the matrix fragments) and
 * table 49 (registers); the same layouts as CuTe's copy traits of SM100_TMEM_LOAD_*.
 */
export const tensorMemoryShapes: Readonly<Record<TensorMemoryShape, FragmentLayout>> = {
  '32x32b': {
    lanes: 32,
    columns: 1,
    registers: 1,
    mostRepeats: 128,
    isSplit: false,
    lane: (thread) => thread,
    column: (_, register) => register,
  },
  '16x64b': {
    lanes: 16,
    columns: 2,
    registers: 1,
    mostRepeats: 128,
    isSplit: false,
    lane: (thread) => (thread >> 2) + 8 * (thread & 1),
    column: (thread, register) => ((thread >> 1) & 1) + 2 * register,
  },
  '16x128b': {
    lanes: 16,
    columns: 4,
    registers: 2,
    mostRepeats: 64,
    isSplit: false,
    lane: (thread, register) => (thread >> 2) + 8 * (register & 1),
    column: (thread, register) => (thread & 3) + 4 * (register >> 1),
  },
  '16x256b': {
    lanes: 16,
    columns: 8,
    registers: 4,
    mostRepeats: 32,
    isSplit: false,
    lane: (thread, register) => (thread >> 2) + 8 * ((register >> 1) & 1),
    column: (thread, register) => (register & 1) + 2 * (thread & 3) + 8 * (register >> 2),
  },
  '16x32bx2': {
    lanes: 16,
    columns: 1,
    registers: 1,
    mostRepeats: 128,
    isSplit: true,
    lane: (thread) => thread & 15,
    column: (_, register) => register,
  },
};

/** One tcgen05.ld or tcgen05.st, without its address and registers. */
export interface FragmentTransfer {
  readonly shape: TensorMemoryShape;
  /** The N of .xN. */
  readonly repeat: number;
  /**
   * .pack::16b of a load, .unpack::16b of a store: a register holds the low halves of two adjacent
   * columns, the lower column in its low half. A store clears the upper halves of the columns, which
   * the PTX ISA leaves open.
   */
  readonly isPacked?: boolean;
  /** immHalfSplitoff of 16x32bx2, in columns; default: the upper half follows the lower one. */
  readonly halfOffset?: number;
}

/** Registers of each thread that a transfer loads or stores. */
export function fragmentRegisters({ shape, repeat }: FragmentTransfer): number {
  return tensorMemoryShapes[shape].registers * repeat;
}

/**
 * The words that a transfer touches: one rectangle; two for 16x32bx2, which overlap where the offset of
 * its upper half is smaller than a half.
 */
export function touchedByFragment(
  transfer: FragmentTransfer,
  address: number,
): readonly TensorMemoryRectangle[] {
  const { lanes, isSplit } = tensorMemoryShapes[transfer.shape];
  const columns = columnsOfHalf(transfer);
  const [firstLane, firstColumn] = [laneOf(address), columnOf(address)];
  const first = { firstLane, lanes, firstColumn, columns };
  return isSplit ? [first, { ...first, firstColumn: firstColumn + halfOffset(transfer) }] : [first];
}

/**
 * The error in a transfer by warp `warp` of its CTA at this address, or null: a repeat that the shape
 * does not have, lanes that are not the warp's (warp w reaches lanes 32·(w mod 4) to 32·(w mod 4) +
 * 31: PTX ISA 9.2, "Access restrictions", section 9.7.16.8.1), a lane that is no multiple of the
 * shape's lanes, or columns beyond the last.
 */
export function checkFragment(
  transfer: FragmentTransfer,
  address: number,
  warp: number,
): MemoryViolation | null {
  const { shape, repeat } = transfer;
  const { lanes, mostRepeats, isSplit } = tensorMemoryShapes[shape];
  const name = `.${shape}.x${repeat}`;
  if (!(repeat >= 1 && repeat <= mostRepeats && Number.isInteger(Math.log2(repeat)))) {
    const message = `${name} does not exist; ${shape} has the powers of two from .x1 to .x${mostRepeats}`;
    return { kind: 'instruction-shape', message };
  }
  if (!isSplit && transfer.halfOffset !== undefined) {
    const message = `${name} has no offset of an upper half; only .16x32bx2 has`;
    return { kind: 'instruction-shape', message };
  }
  const lane = laneOf(address);
  const window = 32 * (warp % 4);
  if (lane < window || lane >= window + 32) {
    const message = `${name} at lane ${lane} by warp ${warp}, which reaches lanes ${window} to ${window + 31}`;
    return { kind: 'lane-window', message };
  }
  if (lane % lanes !== 0) {
    const message = `${name} at lane ${lane}; a multiple of ${lanes} is due`;
    return { kind: 'misaligned', message };
  }
  return checkAllColumns(transfer, address);
}

/**
 * tcgen05.ld: the words of tensor memory that the transfer covers into `fragment`,
 * [thread][register]. Throws a RequestError when the fragment is not of the transfer's size or columns
 * lie beyond the last; the address is not checked otherwise ({@link checkFragment}).
 */
export function loadFragment(
  tensor: ByteStore,
  transfer: FragmentTransfer,
  address: number,
  fragment: ByteStore,
): void {
  forEachRun(transfer, address, fragment, (inTensor, inFragment, bytes) =>
    moveBytes(tensor, inTensor, fragment, inFragment, bytes),
  );
}

/** tcgen05.st: the reverse of {@link loadFragment}, with the same errors. */
export function storeFragment(
  tensor: ByteStore,
  transfer: FragmentTransfer,
  address: number,
  fragment: ByteStore,
): void {
  forEachRun(transfer, address, fragment, (inTensor, inFragment, bytes) => {
    moveBytes(fragment, inFragment, tensor, inTensor, bytes);
    if (bytes === halfBytes) fillBytes(tensor, inTensor + halfBytes, halfBytes, 0);
  });
}

/** Calls `visit` with each run of bytes that a transfer moves: the first in tensor memory, the first in the fragment, their number. */
function forEachRun(
  transfer: FragmentTransfer,
  address: number,
  fragment: ByteStore,
  visit: (inTensor: number, inFragment: number, bytes: number) => void,
): void {
  requireTransfer(transfer, address, fragment.words.length);
  const { shape, repeat, isPacked } = transfer;
  if (isPacked === true)
    forEachRegister(transfer, address, (register, word) => {
      for (let half = 0; half < 2; half++)
        visit(wordBytes * (word + half), wordBytes * register + half * halfBytes, halfBytes);
    });
  else if (shape === '32x32b')
    for (let thread = 0; thread < 32; thread++) {
      const start = wordOf(address) + thread * tensorMemoryColumns;
      visit(wordBytes * start, wordBytes * thread * repeat, wordBytes * repeat);
    }
  else
    forEachRegister(transfer, address, (register, word) =>
      visit(wordBytes * word, wordBytes * register, wordBytes),
    );
}

/** Calls `visit` with each index of the fragment and its word, the first of two if packed. */
function forEachRegister(
  transfer: FragmentTransfer,
  address: number,
  visit: (register: number, word: number) => void,
): void {
  const { lane, column, isSplit } = tensorMemoryShapes[transfer.shape];
  const registers = fragmentRegisters(transfer);
  const perColumn = transfer.isPacked === true ? 2 : 1;
  const base = wordOf(address);
  for (let thread = 0; thread < 32; thread++) {
    const start = base + (isSplit && thread >= 16 ? halfOffset(transfer) : 0);
    for (let register = 0; register < registers; register++)
      visit(
        thread * registers + register,
        start + lane(thread, register) * tensorMemoryColumns + column(thread, register) * perColumn,
      );
  }
}

function wordOf(address: number): number {
  return laneOf(address) * tensorMemoryColumns + columnOf(address);
}

function columnsOfHalf({ shape, repeat, isPacked }: FragmentTransfer): number {
  return tensorMemoryShapes[shape].columns * repeat * (isPacked === true ? 2 : 1);
}

function halfOffset(transfer: FragmentTransfer): number {
  return transfer.halfOffset ?? columnsOfHalf(transfer);
}

function checkAllColumns(transfer: FragmentTransfer, address: number): MemoryViolation | null {
  for (const { firstColumn, columns } of touchedByFragment(transfer, address)) {
    const violation = checkColumns(`.${transfer.shape}.x${transfer.repeat}`, firstColumn, columns);
    if (violation !== null) return violation;
  }
  return null;
}

function requireTransfer(transfer: FragmentTransfer, address: number, registers: number): void {
  const { shape, repeat } = transfer;
  const due = 32 * fragmentRegisters(transfer);
  if (registers !== due)
    requireLegal({
      kind: 'instruction-shape',
      message: `.${shape}.x${repeat} moves ${due} registers of a warp but the fragment has ${registers}; pass ${due}`,
    });
  requireLegal(checkAllColumns(transfer, address));
}
