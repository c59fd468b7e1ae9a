import {
  instructionLengths,
  type OperandFormatName,
  operandFormats,
  type TensorCoreArithmetic,
} from '../../../hardware/index.js';
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
import { findMmaLayout, type MmaGroup, type MmaLayout, mmaRectangles } from './mma-layout.js';

/** Where A is: in shared memory, or in tensor memory, whose words hold 2 or 4 adjacent k of a row. */
export type MmaOperand =
  | { readonly space: 'shared'; readonly descriptor: MatrixDescriptor }
  | { readonly space: 'tensor'; readonly address: number };

/** One dense tcgen05.mma of kind::f16, kind::tf32 or kind::f8f6f4 with an fp32 accumulator. */
export interface MmaInstruction {
  readonly group: MmaGroup;
  readonly a: OperandFormatName;
  readonly b: OperandFormatName;
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
}

/** What an instruction touches in each CTA of its group. */
export interface MmaFootprint {
  /** Written, and read if it accumulates. */
  readonly d: readonly TensorMemoryRectangle[];
  /** Read: rectangles of tensor memory, or addresses of 16-byte chunks of shared memory. */
  readonly a:
    | { readonly space: 'shared'; readonly chunks: Int32Array }
    | { readonly space: 'tensor'; readonly rectangles: readonly TensorMemoryRectangle[] };
  /** Read: addresses of 16-byte chunks of shared memory. */
  readonly b: Int32Array;
}

/** A's part in each CTA. */
export function extentOfA(instruction: MmaInstruction, layout: MmaLayout): OperandExtent {
  const { a, shape } = instruction;
  return { rows: layout.rowsPerCta, ...lineOf(a, shape.k) };
}

/** B's part in each CTA. */
export function extentOfB({ b, shape, group }: MmaInstruction): OperandExtent {
  return { rows: shape.n / group, ...lineOf(b, shape.k) };
}

/** Words of a row of A in tensor memory. */
export function tensorMemoryWordsOfA({ a, shape }: MmaInstruction): number {
  return (shape.k * operandFormats[a].storageBits) / 32;
}

/** The layout of an instruction; throws a RequestError if its shape has none. */
export function layoutOf({ group, shape }: MmaInstruction): MmaLayout {
  const layout = findMmaLayout(group, shape.m);
  if (layout === undefined)
    throw new RequestError(
      `tcgen05.mma of ${group} CTAs has no M = ${shape.m}; take one that checkMma accepts`,
    );
  return layout;
}

/** What a legal instruction touches. Throws a RequestError if its shape does not exist. */
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
  };
}

/**
 * What is wrong with an instruction whose group has these shared memories, in ascending rank, or null:
 * formats that the arithmetic does not multiply or that share bytes (6 and 4 bits), a shape that does
 * not exist, D or A at a lane that its layout does not take, columns beyond the last, shared memory
 * beyond the end.
 */
export function checkMma(
  arithmetic: TensorCoreArithmetic,
  instruction: MmaInstruction,
  shared: readonly SharedMemory[],
): MemoryViolation | null {
  const layout = findMmaLayout(instruction.group, instruction.shape.m);
  const problem = problemOfShape(arithmetic, instruction, layout, shared.length);
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
  { operands, mixed, instruction: mnemonic, accumulator, sequence }: TensorCoreArithmetic,
  { a, b, shape, group, aOperand, bOperand }: MmaInstruction,
  layout: MmaLayout | undefined,
  ctas: number,
): string | null {
  if (accumulator !== 'fp32' || sequence !== 'chain')
    return `with the arithmetic of ${mnemonic} of ${operands.join('/')} into ${accumulator}, which is not modelled`;
  if (ctas !== group) return `of ${group} CTAs executed with ${ctas}`;
  if (!operands.includes(a) || !operands.includes(b) || (a !== b && !mixed))
    return `of ${a} and ${b} with the arithmetic of ${operands.join('/')}${mixed ? '' : ', both alike'}`;
  for (const format of [a, b])
    if (![8, 16, 32].includes(operandFormats[format].storageBits))
      return `of ${format}, whose layout in memory is not modelled`;
  const majors = [bOperand.major, aOperand.space === 'shared' ? aOperand.descriptor.major : 'k'];
  if (operandFormats[a].storageBits === 32 && majors.includes('mn'))
    return `of ${a} whose K is not major, whose layout in memory is not modelled`;
  const [k] = instructionLengths('tcgen05.mma', a);
  if (shape.k !== k) return `of ${a} with K = ${shape.k}; ${k} is due`;
  if (layout === undefined) return `of ${group} CTAs with M = ${shape.m}, which does not exist`;
  const isTransposedBytes = bOperand.major === 'mn' && operandFormats[b].storageBits === 8;
  const step = isTransposedBytes ? layout.nStepOfTransposedBytes : layout.nStep;
  if (!(shape.n >= step && shape.n <= 256 && shape.n % step === 0))
    return `of ${group} CTAs with M = ${shape.m} and N = ${shape.n}; a multiple of ${step} up to 256 is due`;
  if (aOperand.space === 'tensor' && !layout.takesTensorMemoryA)
    return `of ${group} CTAs with M = ${shape.m} and A in tensor memory, which is not modelled`;
  return null;
}

/** Elements along K in units of shared memory's layouts: those of 32 bits, whose K is major, are two halves each. */
function lineOf(
  format: OperandFormatName,
  k: number,
): Pick<OperandExtent, 'k' | 'bytesPerElement'> {
  const { storageBits } = operandFormats[format];
  if (storageBits === 32) return { k: 2 * k, bytesPerElement: 2 };
  return { k, bytesPerElement: storageBits === 16 ? 2 : 1 };
}
