import type { PatternArray } from '../../../formats/index.js';
import {
  columnOf,
  type descriptorChunks,
  elementPackings,
  gatherOperand,
  laneOf,
  type MatrixDescriptor,
  type MemoryViolation,
  type OperandExtent,
  type SharedMemory,
  type TensorMemory,
  tensorMemoryColumns,
  type unpackElements,
} from '../../memory/index.js';
import { gatherScales } from './block-scales.js';
import { memoryBits, type MmaFormatName, patternBits } from './mma-elements.js';
import {
  extentOfA,
  extentOfB,
  isLaneLeftOut,
  type MmaInstruction,
  scaleRows,
  tensorMemoryWordsOfA,
} from './mma-instruction.js';
import { laneOfRow, lanesOfPart, type MmaLayout } from './mma-layout.js';
import { negate, type ProductCore, type ProductScales } from './product-cores.js';

/** The memories of one CTA that an instruction works on. */
export interface MmaCta {
  readonly shared: SharedMemory;
  readonly tensor: Pick<TensorMemory, 'store'>;
}

/** The scale factors in a CTA's tensor memory, null where the instruction has none, or the error in them. */
export function scalesOf(
  instruction: MmaInstruction,
  layout: MmaLayout,
  words: Uint32Array,
): ProductScales | MemoryViolation | null {
  const { scales, shape } = instruction;
  if (scales === undefined) return null;
  const [a, b] = scaleRows(instruction, layout).map(({ what, operand, rows }) =>
    gatherScales(words, what, operand, [rows, shape.k / scales.block]),
  );
  return 'kind' in a ? a : 'kind' in b ? b : { a, b };
}

/** How chunks are found, and what is taken of elements that share bytes: their patterns, or whole bytes (`spreadBytes`). */
export interface Gathering {
  readonly chunksOf: typeof descriptorChunks;
  readonly unpack: typeof unpackElements;
}

/** All of B, [n][k]: the columns of the CTA of even rank first. */
export function gatherB(
  core: ProductCore,
  instruction: MmaInstruction,
  ctas: readonly MmaCta[],
  gathering: Gathering,
): void {
  const { b, bOperand, negateB } = instruction;
  const extent = extentOfB(instruction);
  const elements = core.b.length / ctas.length;
  ctas.forEach(({ shared }, i) =>
    gatherMatrix(
      { shared, descriptor: bOperand, extent, format: b, bits: memoryBits(instruction, b) },
      core.b.subarray(i * elements, (i + 1) * elements),
      gathering,
    ),
  );
  if (negateB === true && b !== 'u8' && b !== 's8') negate(core.b, b);
  core.packB();
}

/** The rows of A of one CTA. */
export function gatherA(
  core: ProductCore,
  instruction: MmaInstruction,
  layout: MmaLayout,
  { shared, tensor }: MmaCta,
  gathering: Gathering,
): void {
  const { a, aOperand, negateA } = instruction;
  const bits = memoryBits(instruction, a);
  if (aOperand.space === 'shared') {
    const extent = extentOfA(instruction, layout);
    const { descriptor } = aOperand;
    gatherMatrix({ shared, descriptor, extent, format: a, bits }, core.a, gathering);
  } else {
    const count = tensorMemoryWordsOfA(instruction);
    const words = new Uint32Array(layout.rowsPerCta * count);
    for (let row = 0; row < layout.rowsPerCta; row++) {
      const from = firstWordOfRow(layout, aOperand.address, row);
      words.set(tensor.store.words.subarray(from, from + count), row * count);
    }
    const packed = new Uint8Array(words.buffer);
    if (bits === 4) gathering.unpack(elementPackings.b4x2, packed, core.a);
    else bytesOf(core.a).set(packed);
  }
  if (negateA === true && a !== 'u8' && a !== 's8') negate(core.a, a);
}

function bytesOf({ buffer, byteOffset, byteLength }: PatternArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A matrix in shared memory; an element takes `bits` bits there. */
interface MatrixInMemory {
  readonly shared: SharedMemory;
  readonly descriptor: MatrixDescriptor;
  readonly extent: OperandExtent;
  readonly format: MmaFormatName;
  readonly bits: number;
}

/** The patterns of a matrix in shared memory, one an element. */
function gatherMatrix(
  { shared, descriptor, extent, format, bits }: MatrixInMemory,
  target: PatternArray,
  { chunksOf, unpack }: Gathering,
): void {
  if (bits === 4) {
    const packed = new Uint8Array(extent.rows * extent.k);
    gatherOperand(shared, descriptor, extent, packed, chunksOf);
    unpack(elementPackings.b4x2, packed, target);
    return;
  }
  gatherOperand(shared, descriptor, extent, patternsOf(target, extent), chunksOf);
  const ofFormat = patternBits(format);
  if (ofFormat < bits) {
    const packing = ofFormat === 4 ? elementPackings.b4x16_p64 : elementPackings.b6x16_p32;
    unpack(packing, bytesOf(target), target);
  }
}

/** An operand's patterns as elements of the size in shared memory's layout. */
function patternsOf(operand: PatternArray, { bytesPerElement }: OperandExtent): PatternArray {
  const { buffer, byteOffset, byteLength, BYTES_PER_ELEMENT } = operand;
  if (BYTES_PER_ELEMENT === bytesPerElement) return operand;
  return new Uint16Array(buffer, byteOffset, byteLength / 2);
}

/** Visits the parts of D's rows of a CTA: their places in tensor memory and in the accumulator. */
function forEachPart(
  layout: MmaLayout,
  { d, shape }: MmaInstruction,
  visit: (inTensorMemory: number, inTile: number, columns: number) => void,
): void {
  const columns = shape.n / layout.columnParts;
  for (let row = 0; row < layout.rowsPerCta; row++)
    for (let part = 0; part < layout.columnParts; part++)
      visit(
        firstWordOfRow(layout, d, row) + part * lanesOfPart(layout) * tensorMemoryColumns,
        row * shape.n + part * columns,
        columns,
      );
}

/** Loads C: D's rows of a CTA as they are. */
export function loadRows(
  layout: MmaLayout,
  instruction: MmaInstruction,
  words: Uint32Array,
  accumulator: Uint32Array,
): void {
  forEachPart(layout, instruction, (from, to, columns) =>
    accumulator.set(words.subarray(from, from + columns), to),
  );
}

/** Stores D's rows of the `cta`th CTA of the group; lanes that are left out stay as they are. */
export function storeRows(
  layout: MmaLayout,
  instruction: MmaInstruction,
  accumulator: Uint32Array,
  words: Uint32Array,
  cta: number,
): void {
  forEachPart(layout, instruction, (to, from, columns) => {
    if (!isLaneLeftOut(instruction, cta, Math.floor(to / tensorMemoryColumns)))
      words.set(accumulator.subarray(from, from + columns), to);
  });
}

function firstWordOfRow(layout: MmaLayout, address: number, row: number): number {
  return (laneOf(address) + laneOfRow(layout, row)) * tensorMemoryColumns + columnOf(address);
}
