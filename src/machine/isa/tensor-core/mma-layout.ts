import {
  columnOf,
  laneOf,
  tensorMemoryLanes,
  type TensorMemoryRectangle,
} from '../../memory/index.js';

/** One CTA, or a pair of CTAs that each hold half of A's rows and half of B's columns. */
export type MmaGroup = 1 | 2;

/** Layout of D in the tensor memory of each CTA of the group, for one M. */
export interface MmaLayout {
  /** Its letter in the PTX ISA. */
  readonly name: 'A' | 'B' | 'D' | 'E' | 'F' | 'G';
  readonly group: MmaGroup;
  readonly m: 32 | 64 | 128 | 256;
  /** Whether it is a layout of `.ws`. */
  readonly isWeightStationary: boolean;
  /** Rows of D that each CTA holds, the lower ones in the CTA of even rank. */
  readonly rowsPerCta: 32 | 64 | 128;
  /** Adjacent rows that lie in adjacent lanes. */
  readonly rowsPerRun: number;
  /** Lanes from one run to the next. */
  readonly lanesPerRun: number;
  /** Parts of D's columns, the left one first, which lie in equal shares of the lanes, in the same columns. */
  readonly columnParts: 1 | 2 | 4;
  /** The lanes that D, and A in tensor memory, may begin at. */
  readonly firstLanes: readonly number[];
  /** N is a multiple of it, up to 256; with `.ws` N is 64, 128 or 256. */
  readonly nStep: 8 | 16 | 64;
  /** The same step if B is transposed and has elements of 8 bits. */
  readonly nStepOfTransposedBytes: 16 | 32 | 64;
  /** Whether A may lie in tensor memory; it is then laid out as D. */
  readonly takesTensorMemoryA: boolean;
}

const runsOfAll = { rowsPerRun: 128, lanesPerRun: 128 };

/**
 * The layouts of dense tcgen05.mma. Sources: PTX ISA 9.2, "Data Path Layout Organization"
 * (section 9.7.16.10.5), table 39 (shapes) and the table of N for transposed 8-bit B (9.7.16.10.1); the
 * lanes as in CuTe's tmem_frg. N of M = 128 is in steps of 16, as CUTLASS asserts, where table 39 has
 * steps of 8. Those of `.ws` are CuTe's tmem_frg_ws (1 × 4 and 2 × 2 data paths). Layout B takes A from tensor memory too, in
 * a layout of its own that is left out, and so do layouts E and G.
 */
export const mmaLayouts: readonly MmaLayout[] = [
  {
    name: 'F',
    group: 1,
    m: 64,
    isWeightStationary: false,
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
    isWeightStationary: false,
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
    isWeightStationary: false,
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
    isWeightStationary: false,
    rowsPerCta: 128,
    ...runsOfAll,
    columnParts: 1,
    firstLanes: [0],
    nStep: 16,
    nStepOfTransposedBytes: 32,
    takesTensorMemoryA: true,
  },
  ...(['G', 'E', 'D'] as const).map((name, i): MmaLayout => ({
    name,
    group: 1,
    m: ([32, 64, 128] as const)[i],
    isWeightStationary: true,
    rowsPerCta: ([32, 64, 128] as const)[i],
    ...runsOfAll,
    columnParts: ([4, 2, 1] as const)[i],
    firstLanes: [0],
    nStep: 64,
    nStepOfTransposedBytes: 64,
    takesTensorMemoryA: name === 'D',
  })),
];

/** Properties of an instruction that decide its layout. */
interface LayoutQuery {
  readonly group: MmaGroup;
  readonly shape: { readonly m: number };
  readonly isWeightStationary?: boolean;
}

/** The layout of an instruction's M, or undefined if there is none. */
export function findMmaLayout(query: LayoutQuery): MmaLayout | undefined {
  const { group, shape, isWeightStationary = false } = query;
  return mmaLayouts.find(
    (layout) =>
      layout.group === group &&
      layout.m === shape.m &&
      layout.isWeightStationary === isWeightStationary,
  );
}

/** Lanes from one part of D's columns to the next. */
export function lanesOfPart({ columnParts }: MmaLayout): number {
  return tensorMemoryLanes / columnParts;
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
      const firstLane = laneOf(address) + part * lanesOfPart(layout) + run * lanesPerRun;
      rectangles.push({ firstLane, lanes, firstColumn, columns });
    }
  return rectangles;
}
