import { columnOf, laneOf, type TensorMemoryRectangle } from '../../memory/index.js';

/** One CTA, or a pair of CTAs of which each holds half of A's rows and half of B's columns. */
export type MmaGroup = 1 | 2;

/** How D lies in the tensor memory of each CTA of the group, for one M. */
export interface MmaLayout {
  /** Its letter in the PTX ISA. */
  readonly name: 'A' | 'B' | 'D' | 'F';
  readonly group: MmaGroup;
  readonly m: 64 | 128 | 256;
  /** Rows of D that each CTA holds, the lower ones in the CTA of even rank. */
  readonly rowsPerCta: 64 | 128;
  /** Adjacent rows that lie in adjacent lanes. */
  readonly rowsPerRun: number;
  /** Lanes from one run to the next. */
  readonly lanesPerRun: number;
  /** 2 if the right half of D's columns lies 64 lanes below the left one, in the same columns. */
  readonly columnParts: 1 | 2;
  /** The lanes that D, and A in tensor memory, may begin at. */
  readonly firstLanes: readonly number[];
  /** N is a multiple of it, up to 256. */
  readonly nStep: 8 | 16;
  /** Likewise if B is transposed and has elements of 8 bits. */
  readonly nStepOfTransposedBytes: 16 | 32;
  /** Whether A may lie in tensor memory: as D if it may. */
  readonly takesTensorMemoryA: boolean;
}

const runsOfAll = { rowsPerRun: 128, lanesPerRun: 128 };

/**
 * The layouts of dense tcgen05.mma without .ws. Sources: PTX ISA 9.2, "Data Path Layout Organization"
 * (section 9.7.16.10.5), table 39 (shapes) and the table of N for transposed 8-bit B (9.7.16.10.1); the
 * lanes as in CuTe's tmem_frg. N of M = 128 is in steps of 16, as CUTLASS asserts, where table 39 has
 * steps of 8. Layout B takes A from tensor memory too, in a layout of its own that is left out.
 */
export const mmaLayouts: readonly MmaLayout[] = [
  {
    name: 'F',
    group: 1,
    m: 64,
    rowsPerCta: 64,
    rowsPerRun: 16,
    lanesPerRun: 32,
    columnParts: 1,
    firstLanes: [0, 16],
    nStep: 8,
    nStepOfTransposedBytes: 16,
    takesTensorMemoryA: true,
  },
  {
    name: 'D',
    group: 1,
    m: 128,
    rowsPerCta: 128,
    ...runsOfAll,
    columnParts: 1,
    firstLanes: [0],
    nStep: 16,
    nStepOfTransposedBytes: 16,
    takesTensorMemoryA: true,
  },
  {
    name: 'B',
    group: 2,
    m: 128,
    rowsPerCta: 64,
    ...runsOfAll,
    columnParts: 2,
    firstLanes: [0],
    nStep: 16,
    nStepOfTransposedBytes: 32,
    takesTensorMemoryA: false,
  },
  {
    name: 'A',
    group: 2,
    m: 256,
    rowsPerCta: 128,
    ...runsOfAll,
    columnParts: 1,
    firstLanes: [0],
    nStep: 16,
    nStepOfTransposedBytes: 32,
    takesTensorMemoryA: true,
  },
];

/** The layout of an M in a group, or undefined if there is none. */
export function findMmaLayout(group: MmaGroup, m: number): MmaLayout | undefined {
  return mmaLayouts.find((layout) => layout.group === group && layout.m === m);
}

/** The lane, from the first on, of a row of the CTA's part of D, in the left part of its columns. */
export function laneOfRow({ rowsPerRun, lanesPerRun }: MmaLayout, row: number): number {
  return Math.floor(row / rowsPerRun) * lanesPerRun + (row % rowsPerRun);
}

/** The words of tensor memory that rows of this many words take, in each CTA of the group. */
export function mmaRectangles(
  layout: MmaLayout,
  address: number,
  words: number,
): readonly TensorMemoryRectangle[] {
  const { rowsPerCta, rowsPerRun, lanesPerRun, columnParts } = layout;
  const lanes = Math.min(rowsPerRun, rowsPerCta);
  const columns = words / columnParts;
  const firstColumn = columnOf(address);
  const rectangles: TensorMemoryRectangle[] = [];
  for (let part = 0; part < columnParts; part++)
    for (let run = 0; run < rowsPerCta / lanes; run++) {
      const firstLane = laneOf(address) + part * 64 + run * lanesPerRun;
      rectangles.push({ firstLane, lanes, firstColumn, columns });
    }
  return rectangles;
}
