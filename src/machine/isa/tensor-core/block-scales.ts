import type { BlockScaledKind, ScaleFormatName } from '../../../hardware/index.js';
import {
  checkColumns,
  columnOf,
  laneOf,
  type MemoryViolation,
  tensorMemoryColumns,
  tensorMemoryLanes,
  type TensorMemoryRectangle,
} from '../../memory/index.js';

/** Location of the factors of one operand. */
export interface ScaleOperand {
  /** The address in the tensor memory of each CTA of the group. */
  readonly address: number;
  /** SFA_ID or SFB_ID of the instruction descriptor: the byte of each word from which on the factors lie. */
  readonly id: number;
}

/** The factors of a block-scaled tcgen05.mma. */
export interface BlockScales {
  readonly kind: BlockScaledKind;
  readonly format: ScaleFormatName;
  readonly block: 16 | 32;
  readonly a: ScaleOperand;
  readonly b: ScaleOperand;
}

/** Lanes that one warp reaches; each such partition has the factors. */
const partitionLanes = 32;

/** Bits 30 and 31 of an address, in which CUTLASS keeps the byte of a word, are no part of the lane. */
const addressMask = 0x3fffffff;

/**
 * The words with the factors of `rows` rows of A, or columns of B: that of row r in lane r mod 32, column r / 32 from the
 * address on, in each of the four partitions of lanes. Sources: PTX ISA 9.2, "Block Scaling" (section 9.7.16.10.7:
 * factors are duplicated to all partitions; the figures of the layouts), and the layouts that CUTLASS and Triton write.
 */
export function scaleRectangles(
  { address }: ScaleOperand,
  rows: number,
): readonly TensorMemoryRectangle[] {
  const columns = Math.ceil(rows / partitionLanes);
  const lanes = Math.min(rows, partitionLanes);
  return Array.from({ length: tensorMemoryLanes / partitionLanes }, (_, partition) => ({
    firstLane: partition * partitionLanes,
    lanes,
    firstColumn: columnOf(address),
    columns,
  }));
}

/**
 * The error in the place of the factors, or null: a lane other than 0, columns beyond the last, an id that the blocks do not have.
 */
export function checkScales(
  what: 'A' | 'B',
  { address, id }: ScaleOperand,
  rows: number,
  perRow: number,
): MemoryViolation | null {
  const name = `the scale factors of ${what} of tcgen05.mma`;
  const lane = laneOf(address & addressMask);
  if (lane !== 0) return { kind: 'misaligned', message: `${name} at lane ${lane}; lane 0 is due` };
  if (id % perRow !== 0)
    return {
      kind: 'instruction-shape',
      message: `${name}: id ${id} for ${perRow} factors of a row; a multiple of ${perRow} is due`,
    };
  return checkColumns(name, columnOf(address), Math.ceil(rows / partitionLanes));
}

/**
 * The factors [rows][perRow], or the error: the partitions of lanes differ, and no source says which of them the
 * hardware reads for which rows.
 */
export function gatherScales(
  words: Uint32Array,
  what: 'A' | 'B',
  { address, id }: ScaleOperand,
  [rows, perRow]: readonly [rows: number, perRow: number],
): Uint8Array | MemoryViolation {
  const factors = new Uint8Array(rows * perRow);
  for (let row = 0; row < rows; row++) {
    const [lane, column] = [
      row % partitionLanes,
      columnOf(address) + Math.floor(row / partitionLanes),
    ];
    for (let i = 0; i < perRow; i++) {
      const factorIn = (partition: number): number => {
        const word = words[(partition * partitionLanes + lane) * tensorMemoryColumns + column];
        return (word >>> (8 * (id + i))) & 0xff;
      };
      const factor = factorIn(0);
      for (let partition = 1; partition < tensorMemoryLanes / partitionLanes; partition++)
        if (factorIn(partition) !== factor)
          return {
            kind: 'instruction-shape',
            message: `the scale factors of ${what} differ between lanes ${lane} and ${lane + partition * partitionLanes} of column ${column}: ${factor} and ${factorIn(partition)}; all four partitions of lanes need the same`,
          };
      factors[row * perRow + i] = factor;
    }
  }
  return factors;
}
