import { RequestError } from '../../../request-error.js';
import {
  checkColumns,
  checkOperand,
  descriptorChunks,
  laneOf,
  type MatrixDescriptor,
  type MemoryViolation,
  type OperandExtent,
  type SharedMemory,
  type TensorMemoryRectangle,
} from '../../memory/index.js';
import { type BlockScales, checkScales, scaleRectangles } from './block-scales.js';
import {
  memoryBits,
  type MmaAccumulator,
  type MmaFormatName,
  patternBits,
} from './mma-elements.js';
import { findMmaLayout, type MmaGroup, type MmaLayout, mmaRectangles } from './mma-layout.js';

/** Place of A: in shared memory, or in tensor memory, whose words hold 1 to 8 adjacent k of a row. */
export type MmaOperand =
  | { readonly space: 'shared'; readonly descriptor: MatrixDescriptor }
  | { readonly space: 'tensor'; readonly address: number };

/** One dense tcgen05.mma. */
export interface MmaInstruction {
  readonly group: MmaGroup;
  readonly a: MmaFormatName;
  readonly b: MmaFormatName;
  /** `.ws`: other shapes, and D in other lanes. */
  readonly isWeightStationary?: boolean;
  /** Default fp32. */
  readonly accumulator?: MmaAccumulator;
  /** For s32: whether sums saturate at the ends of its range instead of wrapping around. */
  readonly saturates?: boolean;
  /** For kind::mxf8f6f4, kind::mxf4 and kind::mxf4nvf4: the scale factors. */
  readonly scales?: BlockScales;
  readonly shape: { readonly m: number; readonly n: number; readonly k: number };
  /** The address of D in the tensor memory of each CTA of the group. */
  readonly d: number;
  /** A's rows of each CTA, at the same place in each. */
  readonly aOperand: MmaOperand;
  /** B's columns of each CTA, N or N / 2 of them, at the same place in each. */
  readonly bOperand: MatrixDescriptor;
  /** D = A·B + D, or A·B alone. */
  readonly accumulate: boolean;
  readonly negateA?: boolean;
  readonly negateB?: boolean;
  /** disable-output-lane: a bit for each lane of tensor memory, 4 words of 32 lanes for each CTA; D stays as it is there (the tracker counts it as written). */
  readonly lanesLeftOut?: readonly number[];
}

/** Whether D's elements in a lane of the group's `cta`th CTA stay as they are. */
export function isLaneLeftOut(
  { lanesLeftOut }: Pick<MmaInstruction, 'lanesLeftOut'>,
  cta: number,
  lane: number,
): boolean {
  const words = lanesLeftOut ?? [];
  return (((words[4 * cta + (lane >> 5)] ?? 0) >>> (lane & 31)) & 1) === 1;
}

/** Memory that an instruction touches in each CTA of its group. */
export interface MmaFootprint {
  /** Written, and read if it accumulates. */
  readonly d: readonly TensorMemoryRectangle[];
  /** Read: rectangles of tensor memory, or addresses of 16-byte chunks of shared memory. */
  readonly a:
    | { readonly space: 'shared'; readonly chunks: Int32Array }
    | { readonly space: 'tensor'; readonly rectangles: readonly TensorMemoryRectangle[] };
  /** Read: addresses of 16-byte chunks of shared memory. */
  readonly b: Int32Array;
  /** Read: the factors of a block-scaled product. */
  readonly scales: readonly TensorMemoryRectangle[];
}

/** A's part in each CTA. */
export function extentOfA(instruction: MmaInstruction, layout: MmaLayout): OperandExtent {
  return { rows: layout.rowsPerCta, ...lineOf(instruction, instruction.a) };
}

/** B's part in each CTA. */
export function extentOfB(instruction: MmaInstruction): OperandExtent {
  const { b, shape, group } = instruction;
  return { rows: shape.n / group, ...lineOf(instruction, b) };
}

/** Words of a row of A in tensor memory. */
export function tensorMemoryWordsOfA(instruction: MmaInstruction): number {
  return (instruction.shape.k * memoryBits(instruction, instruction.a)) / 32;
}

/** The layout of an instruction; throws a RequestError if its shape has none. */
export function layoutOf(instruction: MmaInstruction): MmaLayout {
  const { group, shape } = instruction;
  const layout = findMmaLayout(instruction);
  if (layout === undefined)
    throw new RequestError(
      `tcgen05.mma of ${group} CTAs has no M = ${shape.m}; take one that checkMma accepts`,
    );
  return layout;
}

/** The memory that a legal instruction touches. Throws a RequestError if its shape does not exist. */
export function mmaFootprint(
  instruction: MmaInstruction,
  chunksOf: typeof descriptorChunks = descriptorChunks,
): MmaFootprint {
  const { aOperand, bOperand, shape, d } = instruction;
  const layout = layoutOf(instruction);
  return {
    d: mmaRectangles(layout, d, shape.n),
    a:
      aOperand.space === 'shared'
        ? {
            space: 'shared',
            chunks: chunksOf(aOperand.descriptor, extentOfA(instruction, layout)),
          }
        : {
            space: 'tensor',
            rectangles: mmaRectangles(layout, aOperand.address, tensorMemoryWordsOfA(instruction)),
          },
    b: chunksOf(bOperand, extentOfB(instruction)),
    scales: scaleRows(instruction, layout).flatMap(({ operand, rows }) =>
      scaleRectangles(operand, rows),
    ),
  };
}

/** The factors of A's rows of a CTA and of all columns of B; each CTA has its own copy of the latter. */
export function scaleRows({ scales, shape }: MmaInstruction, { rowsPerCta }: MmaLayout) {
  if (scales === undefined) return [];
  return [
    { what: 'A', operand: scales.a, rows: rowsPerCta },
    { what: 'B', operand: scales.b, rows: shape.n },
  ] as const;
}

/**
 * The error in an instruction whose group has these shared memories, in ascending rank, or null: formats or K that the
 * arithmetic lacks, a shape that does not exist, D, A or scale factors at a lane that they may not have, columns beyond
 * the last, shared memory beyond the end.
 *
 * @param problemOf the arithmetic's objection to formats and K, or null
 */
export function checkMma(
  problemOf: (instruction: MmaInstruction) => string | null,
  instruction: MmaInstruction,
  shared: readonly SharedMemory[],
): MemoryViolation | null {
  const layout = findMmaLayout(instruction);
  const problem = problemOf(instruction) ?? problemOfShape(instruction, layout, shared.length);
  if (problem !== null || layout === undefined)
    return { kind: 'instruction-shape', message: `tcgen05.mma ${problem}` };
  const { aOperand, bOperand, shape, d } = instruction;
  const inTensorMemory = [{ what: 'D', address: d, words: shape.n / layout.columnParts }];
  if (aOperand.space === 'tensor')
    inTensorMemory.push({
      what: 'A',
      address: aOperand.address,
      words: tensorMemoryWordsOfA(instruction),
    });
  for (const { what, address, words } of inTensorMemory) {
    const name = `${what} of tcgen05.mma`;
    if (!layout.firstLanes.includes(laneOf(address)))
      return {
        kind: 'misaligned',
        message: `${name} with M = ${shape.m} at lane ${laneOf(address)}; ${layout.firstLanes.join(' or ')} is due`,
      };
    const violation = checkColumns(name, address & 0xffff, words);
    if (violation !== null) return violation;
  }
  if (aOperand.space === 'tensor' && laneOf(aOperand.address) !== laneOf(d))
    return {
      kind: 'misaligned',
      message: `tcgen05.mma has A at lane ${laneOf(aOperand.address)} and D at lane ${laneOf(d)}; the same is due`,
    };
  for (const { what, operand, rows } of scaleRows(instruction, layout)) {
    const perRow = shape.k / (instruction.scales?.block ?? shape.k);
    const violation = checkScales(what, operand, rows, perRow);
    if (violation !== null) return violation;
  }
  for (const memory of shared) {
    const violation =
      (aOperand.space === 'shared'
        ? checkOperand(memory, aOperand.descriptor, extentOfA(instruction, layout))
        : null) ?? checkOperand(memory, bOperand, extentOfB(instruction));
    if (violation !== null) return violation;
  }
  return null;
}

function problemOfShape(
  instruction: MmaInstruction,
  layout: MmaLayout | undefined,
  ctas: number,
): string | null {
  const { a, b, shape, group, aOperand, bOperand, scales } = instruction;
  if (ctas !== group) return `of ${group} CTAs executed with ${ctas}`;
  const aMajor = aOperand.space === 'shared' ? aOperand.descriptor.major : 'k';
  if (patternBits(a) === 32 && [aMajor, bOperand.major].includes('mn'))
    return `of ${a} whose K is not major, whose layout in memory is not modelled`;
  for (const [format, major] of [[a, aMajor] as const, [b, bOperand.major] as const])
    if (patternBits(format) < 8 && major === 'mn')
      return `of ${format} whose K is not major, which does not exist`;
  if (layout === undefined) {
    const ws = instruction.isWeightStationary === true ? '.ws ' : '';
    return `${ws}of ${group} CTAs with M = ${shape.m}, which does not exist`;
  }
  if (scales !== undefined && layout.rowsPerCta !== 128)
    return `of ${group} CTAs with scale factors and M = ${shape.m}, which is not modelled`;
  const isTransposedBytes = bOperand.major === 'mn' && patternBits(b) === 8;
  const step = isTransposedBytes ? layout.nStepOfTransposedBytes : nStepOf(instruction, layout);
  if (layout.isWeightStationary && ![64, 128, 256].includes(shape.n))
    return `.ws with N = ${shape.n}; 64, 128 or 256 is due`;
  if (!(shape.n >= step && shape.n <= 256 && shape.n % step === 0))
    return `of ${group} CTAs with M = ${shape.m} and N = ${shape.n}; a multiple of ${step} up to 256 is due`;
  if (aOperand.space === 'shared') return null;
  if (!layout.takesTensorMemoryA)
    return `of ${group} CTAs with M = ${shape.m} and A in tensor memory, which is not modelled`;
  return patternBits(a) < memoryBits(instruction, a)
    ? `of ${a} in tensor memory, whose layout there is not modelled`
    : null;
}

/** N with scale factors is in steps of 8 for one CTA (table 39 of the PTX ISA 9.2, CUTLASS). */
function nStepOf({ scales, group }: MmaInstruction, { nStep }: MmaLayout): number {
  return scales !== undefined && group === 1 ? 8 : nStep;
}

/**
 * Elements along K in units of shared memory's layouts: an element of 32 bits is two halves, one of 4 bits
 * half a byte.
 */
function lineOf(
  instruction: MmaInstruction,
  format: MmaFormatName,
): Pick<OperandExtent, 'k' | 'bytesPerElement'> {
  const { k } = instruction.shape;
  const bits = memoryBits(instruction, format);
  if (bits === 32) return { k: 2 * k, bytesPerElement: 2 };
  return { k: bits === 4 ? k / 2 : k, bytesPerElement: bits === 16 ? 2 : 1 };
}
