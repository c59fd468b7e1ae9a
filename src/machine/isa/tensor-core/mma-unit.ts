import type { PatternArray } from '../../../formats/index.js';
import {
  architectures,
  createTensorCoreTile,
  findTensorCoreArithmetic,
  type Architecture,
  type OperandFormatName,
  operandFormats,
  type TensorCoreArithmetic,
  type TensorCoreTile,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import {
  columnOf,
  type descriptorChunks,
  gatherOperand,
  laneOf,
  type MemoryViolation,
  type OperandExtent,
  rememberChunks,
  type SharedMemory,
  tensorMemoryColumns,
} from '../../memory/index.js';
import {
  checkMma,
  extentOfA,
  extentOfB,
  layoutOf,
  mmaFootprint,
  type MmaFootprint,
  type MmaInstruction,
  tensorMemoryWordsOfA,
} from './mma-instruction.js';
import { laneOfRow, type MmaLayout } from './mma-layout.js';

/** The memories of one CTA that an instruction works on. */
export interface MmaCta {
  readonly shared: SharedMemory;
  readonly tensor: {
    /** [lane][column]. */
    readonly words: Uint32Array;
  };
}

/** Executes tcgen05.mma. */
export interface MmaUnit {
  readonly arithmetic: TensorCoreArithmetic;
  /** What is wrong with an instruction of these CTAs, in ascending rank, or null. */
  readonly check: (instruction: MmaInstruction, ctas: readonly MmaCta[]) => MemoryViolation | null;
  /**
   * Executes it at once: D in the tensor memory of each CTA. Throws a RequestError for what `check`
   * finds.
   */
  readonly execute: (instruction: MmaInstruction, ctas: readonly MmaCta[]) => void;
  /** What a legal instruction touches: `mmaFootprint`. */
  readonly footprint: (instruction: MmaInstruction) => MmaFootprint;
}

/**
 * A tensor core of this arithmetic, with the bits of `tensorCoreProduct`: each element of D is one fused
 * sum of C and its products, with C = 0 where the instruction does not accumulate. Negation flips the
 * sign bits of an operand. The arithmetic may be another tensor core's, as that of Hopper's wgmma, with the
 * shapes of tcgen05.mma. It keeps the memory of one tile for each shape and pair of formats.
 */
export function createMmaUnit(arithmetic: TensorCoreArithmetic): MmaUnit {
  const tiles = new Map<string, TensorCoreTile>();
  const chunksOf = rememberChunks();
  // Who follows accesses asks for the footprint of one instruction several times.
  let last: { readonly instruction: MmaInstruction; readonly footprint: MmaFootprint } | null =
    null;
  const tileOf = (instruction: MmaInstruction, rows: number): TensorCoreTile => {
    const { a, b, shape } = instruction;
    const key = `${rows} ${shape.n} ${a} ${b}`;
    const tile =
      tiles.get(key) ??
      createTensorCoreTile(arithmetic, {
        rows,
        columns: shape.n,
        inner: shape.k,
        aFormat: a,
        bFormat: b,
      });
    tiles.set(key, tile);
    return tile;
  };
  const check: MmaUnit['check'] = (instruction, ctas) =>
    checkMma(
      arithmetic,
      instruction,
      ctas.map(({ shared }) => shared),
    );
  return {
    arithmetic,
    check,
    footprint: (instruction) => {
      if (last?.instruction !== instruction)
        last = { instruction, footprint: mmaFootprint(instruction, chunksOf) };
      return last.footprint;
    },
    execute: (instruction, ctas) => {
      const violation = check(instruction, ctas);
      if (violation !== null) throw new RequestError(violation.message);
      const layout = layoutOf(instruction);
      const tile = tileOf(instruction, layout.rowsPerCta);
      gatherB(tile, instruction, ctas, chunksOf);
      for (const cta of ctas) {
        const { tensor } = cta;
        gatherA(tile, instruction, layout, cta, chunksOf);
        if (instruction.accumulate) moveRows(layout, instruction, tensor.words, tile.cBits, 'load');
        else tile.cBits.fill(0);
        tile.multiplyAccumulate();
        moveRows(layout, instruction, tensor.words, tile.cBits, 'store');
      }
    },
  };
}

/** All of B, [n][k]: the columns of the CTA of even rank first. */
function gatherB(
  tile: TensorCoreTile,
  instruction: MmaInstruction,
  ctas: readonly MmaCta[],
  chunksOf: typeof descriptorChunks,
): void {
  const extent = extentOfB(instruction);
  const elements = extent.rows * extent.k;
  ctas.forEach(({ shared }, i) =>
    gatherOperand(
      shared,
      instruction.bOperand,
      extent,
      patternsOf(tile.b, extent).subarray(i * elements, (i + 1) * elements),
      chunksOf,
    ),
  );
  if (instruction.negateB === true) negate(tile.b, instruction.b);
  tile.packTransposedB();
}

function gatherA(
  tile: TensorCoreTile,
  instruction: MmaInstruction,
  layout: MmaLayout,
  { shared, tensor }: MmaCta,
  chunksOf: typeof descriptorChunks,
): void {
  const { aOperand } = instruction;
  if (aOperand.space === 'shared')
    gatherOperand(
      shared,
      aOperand.descriptor,
      extentOfA(instruction, layout),
      patternsOf(tile.a, extentOfA(instruction, layout)),
      chunksOf,
    );
  else {
    const count = tensorMemoryWordsOfA(instruction);
    const { words: source } = tensor;
    const words = new Uint32Array(tile.a.buffer, tile.a.byteOffset, tile.a.byteLength / 4);
    for (let row = 0; row < layout.rowsPerCta; row++) {
      const from = firstWordOfRow(layout, aOperand.address, row);
      for (let i = 0; i < count; i++) words[row * count + i] = source[from + i];
    }
  }
  if (instruction.negateA === true) negate(tile.a, instruction.a);
  tile.packA();
}

/** An operand of the tile as elements of the size that shared memory's layout is told in. */
function patternsOf(operand: PatternArray, { bytesPerElement }: OperandExtent): PatternArray {
  const { buffer, byteOffset, byteLength, BYTES_PER_ELEMENT } = operand;
  if (BYTES_PER_ELEMENT === bytesPerElement) return operand;
  return new Uint16Array(buffer, byteOffset, byteLength / 2);
}

function negate(patterns: PatternArray, format: OperandFormatName): void {
  const signBit = 1 << (operandFormats[format].storageBits - 1);
  for (let i = 0; i < patterns.length; i++) patterns[i] ^= signBit;
}

/** D's rows of a CTA between its tensor memory and the tile's accumulator. */
function moveRows(
  layout: MmaLayout,
  { d, shape }: MmaInstruction,
  words: Uint32Array,
  accumulator: Uint32Array,
  direction: 'load' | 'store',
): void {
  const columns = shape.n / layout.columnParts;
  for (let row = 0; row < layout.rowsPerCta; row++)
    for (let part = 0; part < layout.columnParts; part++) {
      const inTensorMemory = firstWordOfRow(layout, d, row) + part * 64 * tensorMemoryColumns;
      const inTile = row * shape.n + part * columns;
      if (direction === 'load')
        accumulator.set(words.subarray(inTensorMemory, inTensorMemory + columns), inTile);
      else words.set(accumulator.subarray(inTile, inTile + columns), inTensorMemory);
    }
}

function firstWordOfRow(layout: MmaLayout, address: number, row: number): number {
  return (laneOf(address) + laneOfRow(layout, row)) * tensorMemoryColumns + columnOf(address);
}

/** The tensor cores of an architecture, by the formats of their operands. */
export interface MmaUnits {
  /** The unit for an instruction, or why there is none. */
  readonly find: (instruction: MmaInstruction) => MmaUnit | string;
}

/** The architectures whose arithmetic the machine can be given; sm_90's is that of its wgmma. */
export type MachineArchitecture = Extract<Architecture, 'sm_90' | 'sm_100' | 'sm_103'>;

/** Tensor cores with an architecture's arithmetic. They keep the memory of the tiles that they met. */
export function createMmaUnits(architecture: MachineArchitecture): MmaUnits {
  const units = new Map<string, MmaUnit | string>();
  const create = ({ a, b }: MmaInstruction): MmaUnit | string => {
    try {
      const { tensorCore: instruction } = architectures[architecture];
      return createMmaUnit(findTensorCoreArithmetic({ instruction, architecture, a, b }));
    } catch (error) {
      if (error instanceof RequestError) return error.message;
      throw error;
    }
  };
  return {
    find: (instruction) => {
      const key = `${instruction.a} ${instruction.b}`;
      const unit = units.get(key) ?? create(instruction);
      units.set(key, unit);
      return unit;
    },
  };
}
