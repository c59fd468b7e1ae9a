import { architectures } from '../../hardware/index.js';
import { type ByteStore, createByteStore } from './byte-store.js';
import type { MemoryViolation } from './shared-memory.js';

/** Lanes of a CTA's tensor memory. Source: PTX ISA 9.2, "Tensor Memory" (section 9.7.16.1). */
export const tensorMemoryLanes = 128;

/** Columns of 32 bits of a CTA's tensor memory. */
export const tensorMemoryColumns: number = architectures.sm_100.tensorMemoryColumns;

/** The unit of allocation, in columns. Source: PTX ISA 9.2, "Tensor Memory Allocation". */
export const tensorAllocationUnit = 32;

/** A rectangle of words of a tensor memory, such as a transfer touches. */
export interface TensorMemoryRectangle {
  readonly firstLane: number;
  readonly lanes: number;
  readonly firstColumn: number;
  readonly columns: number;
}

/** Columns that tcgen05.alloc gave out, all lanes of each. */
export interface TensorMemoryBlock {
  /** The address: lane 0, first column. */
  readonly address: number;
  readonly columns: number;
}

/** Result of tcgen05.alloc. */
export type TensorAllocation =
  | { readonly ok: true; readonly address: number }
  | {
      readonly ok: false;
      /** Whether it is legal and waits until columns are freed. */
      readonly isBlocked: boolean;
      readonly violation: MemoryViolation;
    };

/** Result of tcgen05.dealloc. */
export type TensorDeallocation =
  { readonly ok: true } | { readonly ok: false; readonly violation: MemoryViolation };

/**
 * The tensor memory of one CTA, with the rules of tcgen05.alloc, tcgen05.dealloc and
 * tcgen05.relinquish_alloc_permit (PTX ISA 9.2, section 9.7.16.7.1). It models neither the joint
 * allocation of a pair of CTAs nor the wait for free columns.
 */
export interface TensorMemory {
  /** Words as [lane][column], row-major. */
  readonly store: ByteStore<ArrayBuffer>;
  /**
   * The first free columns that fit. A violation: a number of columns that is no power of two from 32
   * to 512, more columns than the allocation before had, or the permit relinquished. The hardware's
   * choice of free columns is not documented.
   */
  readonly allocate: (columns: number) => TensorAllocation;
  /** Whether there are this many adjacent free columns now. */
  readonly hasRoom: (columns: number) => boolean;
  /** Frees a block; a violation unless it was allocated with this address and this many columns. */
  readonly deallocate: (address: number, columns: number) => TensorDeallocation;
  /** Gives up the right to allocate, for good. */
  readonly relinquishPermit: () => void;
  /** The blocks that are allocated now, in ascending column: those left at the exit of the kernel have leaked. */
  readonly blocks: () => readonly TensorMemoryBlock[];
  /** Whether all of these columns lie in one allocated block. */
  readonly isAllocated: (firstColumn: number, columns: number) => boolean;
}

/** The address of a word: lane in the upper 16 bits, column in the lower ones. */
export function tensorAddress(lane: number, column: number): number {
  return lane * 0x10000 + column;
}

/** The lane of an address. */
export function laneOf(address: number): number {
  return address >>> 16;
}

/** The column of an address. */
export function columnOf(address: number): number {
  return address & 0xffff;
}

/** The violation of columns that end beyond the last one, or null. */
export function checkColumns(
  what: string,
  firstColumn: number,
  columns: number,
): MemoryViolation | null {
  const end = firstColumn + columns;
  if (firstColumn >= 0 && end <= tensorMemoryColumns) return null;
  const message = `${what} takes columns ${firstColumn} to ${end - 1} of tensor memory, which has ${tensorMemoryColumns}`;
  return { kind: 'tensor-allocation', message };
}

/** A tensor memory of zeros with nothing allocated. */
export function createTensorMemory(): TensorMemory {
  const blocks: TensorMemoryBlock[] = [];
  let last = tensorMemoryColumns;
  let hasPermit = true;
  return {
    store: createByteStore(4 * tensorMemoryLanes * tensorMemoryColumns),
    allocate: (columns) => {
      const problem = problemOfAllocation(columns, last, hasPermit);
      if (problem !== null) return { ok: false, isBlocked: false, violation: violation(problem) };
      const address = firstFit(blocks, columns);
      if (address === null) {
        const waits = `tcgen05.alloc of ${columns} columns waits: no ${columns} adjacent columns are free`;
        return { ok: false, isBlocked: true, violation: violation(waits) };
      }
      last = columns;
      blocks.push({ address, columns });
      blocks.sort((one, other) => one.address - other.address);
      return { ok: true, address };
    },
    hasRoom: (columns) => firstFit(blocks, columns) !== null,
    deallocate: (address, columns) => {
      const index = blocks.findIndex((b) => b.address === address && b.columns === columns);
      if (index < 0) {
        const allocated = blocks.map((b) => `${b.columns} at column ${b.address}`).join(', ');
        const problem = `tcgen05.dealloc of ${columns} columns at lane ${laneOf(address)}, column ${columnOf(address)} fits no allocation; allocated: ${allocated || 'nothing'}`;
        return { ok: false, violation: violation(problem) };
      }
      blocks.splice(index, 1);
      return { ok: true };
    },
    relinquishPermit: () => {
      hasPermit = false;
    },
    blocks: () => [...blocks],
    isAllocated: (firstColumn, columns) =>
      blocks.some(
        (b) => b.address <= firstColumn && firstColumn + columns <= b.address + b.columns,
      ),
  };
}

function violation(message: string): MemoryViolation {
  return { kind: 'tensor-allocation', message };
}

function problemOfAllocation(columns: number, last: number, hasPermit: boolean): string | null {
  if (!hasPermit)
    return `tcgen05.alloc of ${columns} columns after tcgen05.relinquish_alloc_permit`;
  const exponent = Math.log2(columns);
  if (!(
    Number.isInteger(exponent) &&
    columns >= tensorAllocationUnit &&
    columns <= tensorMemoryColumns
  ))
    return `tcgen05.alloc of ${columns} columns; a power of two from ${tensorAllocationUnit} to ${tensorMemoryColumns} is due`;
  if (columns > last)
    return `tcgen05.alloc of ${columns} columns after one of ${last}; later allocations must not be larger`;
  return null;
}

function firstFit(blocks: readonly TensorMemoryBlock[], columns: number): number | null {
  let start = 0;
  for (const { address, columns: taken } of blocks) {
    if (start + columns <= address) return start;
    start = address + taken;
  }
  return start + columns <= tensorMemoryColumns ? start : null;
}
