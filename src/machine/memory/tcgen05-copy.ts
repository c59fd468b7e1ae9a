import { type ByteStore, moveBytes } from './byte-store.js';
import type { MatrixDescriptor } from './matrix-descriptor.js';
import { checkOperand, descriptorChunks, type OperandExtent } from './matrix-operand.js';
import { type MemoryViolation, requireLegal, type SharedMemory } from './shared-memory.js';
import {
  checkColumns,
  columnOf,
  laneOf,
  tensorMemoryColumns,
  tensorMemoryLanes,
  type TensorMemoryRectangle,
} from './tensor-memory.js';

/** The shapes of tcgen05.cp with the multicast that each requires, as PTX spells them. */
export type TensorCopyShape =
  | '128x256b'
  | '128x128b'
  | '4x256b'
  | '64x128b.warpx2::02_13'
  | '64x128b.warpx2::01_23'
  | '32x128b.warpx4';

/** Rows that a shape copies, and their destinations. */
export interface TensorCopy {
  /** Rows of the matrix in shared memory. */
  readonly rows: number;
  readonly rowBytes: 16 | 32;
  /**
   * Destinations of runs of adjacent rows: the first row, the number of rows, and the lanes, from that
   * of the address on, that the first row goes to.
   */
  readonly runs: readonly {
    readonly firstRow: number;
    readonly rows: number;
    readonly firstLanes: readonly number[];
  }[];
}

/**
 * The shapes. Sources: PTX ISA 9.2, `tcgen05.cp` (section 9.7.16.9.2, whose text gives the warp pairs) and
 * CuTe's copy traits of SM100_UTCCP_*, which give the destination of each row: with 4x256b one row goes to
 * each warp's lanes. Decompression of formats of 6 and 4 bits (.b8x16) is left out.
 */
export const tensorCopyShapes: Readonly<Record<TensorCopyShape, TensorCopy>> = {
  '128x256b': copyOf(32, [{ firstRow: 0, rows: 128, firstLanes: [0] }]),
  '128x128b': copyOf(16, [{ firstRow: 0, rows: 128, firstLanes: [0] }]),
  '4x256b': copyOf(
    32,
    [0, 1, 2, 3].map((row) => ({ firstRow: row, rows: 1, firstLanes: [32 * row] })),
  ),
  '64x128b.warpx2::02_13': copyOf(16, [{ firstRow: 0, rows: 64, firstLanes: [0, 64] }]),
  '64x128b.warpx2::01_23': copyOf(16, [
    { firstRow: 0, rows: 32, firstLanes: [0, 32] },
    { firstRow: 32, rows: 32, firstLanes: [64, 96] },
  ]),
  '32x128b.warpx4': copyOf(16, [{ firstRow: 0, rows: 32, firstLanes: [0, 32, 64, 96] }]),
};

function copyOf(rowBytes: TensorCopy['rowBytes'], runs: TensorCopy['runs']): TensorCopy {
  return { rowBytes, runs, rows: runs.reduce((sum, run) => sum + run.rows, 0) };
}

/** The bytes that a shape reads, as an operand of single bytes. */
export function tensorCopyExtent(shape: TensorCopyShape): OperandExtent {
  const { rows, rowBytes } = tensorCopyShapes[shape];
  return { rows, k: rowBytes, bytesPerElement: 1 };
}

/** The words of tensor memory that a copy writes. */
export function touchedByTensorCopy(
  shape: TensorCopyShape,
  address: number,
): readonly TensorMemoryRectangle[] {
  const { runs, rowBytes } = tensorCopyShapes[shape];
  return runs.flatMap(({ rows, firstLanes }) =>
    firstLanes.map((lane) => ({
      firstLane: laneOf(address) + lane,
      lanes: rows,
      firstColumn: columnOf(address),
      columns: rowBytes / 4,
    })),
  );
}

/**
 * The error in a copy, or null: a matrix whose major dimension is not K, which tcgen05.cp cannot
 * express, errors that {@link checkOperand} finds, or lanes or columns beyond the last.
 */
export function checkTensorCopy(
  shape: TensorCopyShape,
  shared: SharedMemory,
  source: MatrixDescriptor,
  address: number,
): MemoryViolation | null {
  if (source.major !== 'k')
    return {
      kind: 'instruction-shape',
      message: `tcgen05.cp.${shape} of a matrix whose major dimension is not K`,
    };
  for (const { firstLane, lanes, firstColumn, columns } of touchedByTensorCopy(shape, address)) {
    if (firstLane + lanes > tensorMemoryLanes)
      return {
        kind: 'misaligned',
        message: `tcgen05.cp.${shape} at lane ${laneOf(address)} ends at lane ${firstLane + lanes - 1} of ${tensorMemoryLanes}`,
      };
    const violation = checkColumns(`tcgen05.cp.${shape}`, firstColumn, columns);
    if (violation !== null) return violation;
  }
  return checkOperand(shared, source, tensorCopyExtent(shape));
}

/**
 * tcgen05.cp, at once: the matrix that the descriptor names to tensor memory, each
 * row to one or more lanes, from the address's column on. Throws a RequestError for errors that
 * {@link checkTensorCopy} finds.
 */
export function copyToTensorMemory(
  shape: TensorCopyShape,
  shared: SharedMemory,
  source: MatrixDescriptor,
  tensor: ByteStore,
  address: number,
): void {
  requireLegal(checkTensorCopy(shape, shared, source, address));
  const chunks = descriptorChunks(source, tensorCopyExtent(shape));
  const { runs, rowBytes } = tensorCopyShapes[shape];
  const perRow = rowBytes / 16;
  for (const { firstRow, rows, firstLanes } of runs)
    for (let row = 0; row < rows; row++)
      for (let chunk = 0; chunk < perRow; chunk++) {
        const from = chunks[(firstRow + row) * perRow + chunk];
        for (const firstLane of firstLanes) {
          const lane = laneOf(address) + firstLane + row;
          const to = lane * tensorMemoryColumns + columnOf(address) + 4 * chunk;
          moveBytes(shared.store, from, tensor, 4 * to, 16);
        }
      }
}
