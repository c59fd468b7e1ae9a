import {
  type Architecture,
  type BlockScaledArithmetic,
  executeBlockScaledProduct,
  findBlockScaledArithmetic,
  lackOf,
  type OperandFormatName,
  operandFormats,
  type ScaleFormatName,
} from '../../../hardware/index.js';
import { warpLanes, type TracedScales } from '../../../machine/index.js';
import { RequestError } from '../../../request-error.js';
import { blockOf, isBlockScaledKind } from '../block-scaling.js';
import { elementsOf, wrongOperands } from '../operands.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { Slot } from '../slot.js';
import type { WarpOperation } from '../warp-instruction.js';
import { operandNumber, type WarpRegisters } from '../warp-registers.js';
import { gather, layoutOfA, layoutOfB, layoutOfC, scatter } from './mma-fragment.js';
import { faultOfLanes, matricesOf, slotsIn } from './mma-operands.js';
import { unpad } from './mma-product.js';
import { traceMma } from './trace-mma.js';

/** Rows of A; columns of B. */
const [rows, columns] = [16, 8] as const;

/** A side of the product: its number of rows, or of columns, and of threads of four that a thread-id can name. */
const sides = {
  a: { count: rows, threads: 2 },
  b: { count: columns, threads: 4 },
} as const;
type Side = keyof typeof sides;

/** The scale factors of A or of B as operands: a register of all lanes, and which of its bytes they are. */
interface FactorOperand {
  readonly slot: Slot;
  readonly byte: ResolvedOperand;
  readonly thread: ResolvedOperand;
}

/** The values of {byte-id, thread-id}. */
interface Selector {
  readonly byte: number;
  readonly thread: number;
}

interface Form {
  readonly k: number;
  readonly types: Readonly<Record<'a' | 'b' | 'c', string>>;
  readonly arithmetic: BlockScaledArithmetic;
}

const isFormat = (name: string | undefined): name is OperandFormatName =>
  name !== undefined && Object.hasOwn(operandFormats, name);

/**
 * The form of `mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0`, whose scaling words
 * may also stand before the shape; or the missing feature.
 */
function formOf(architecture: Architecture, modifiers: readonly string[]): Form | string {
  const isScaling = (word: string) => word === 'block_scale' || word.includes('::');
  const [, aligned, shape, row, col, d, a, b, c, scale, ...more] = modifiers.filter(
    (word) => !isScaling(word),
  );
  const name = modifiers.find((word) => word.startsWith('kind::'))?.slice('kind::'.length) ?? '';
  const unknown = `the kind, shape and formats of mma.${modifiers.join('.')}`;
  const isForm = aligned === 'aligned' && row === 'row' && col === 'col' && more.length === 0;
  if (!isForm || d !== 'f32' || c !== 'f32' || !isBlockScaledKind(name)) return unknown;
  const lack = lackOf(architecture, `mma.sync.kind::${name}`);
  if (lack !== null) return lack;
  const block = blockOf(name, modifiers);
  if (typeof block === 'string') return block;
  if (!isFormat(a) || !isFormat(b) || (scale !== 'ue8m0' && scale !== 'ue4m3')) return unknown;
  const query = { kind: name, scale: scale as ScaleFormatName, block, a, b };
  try {
    const arithmetic = findBlockScaledArithmetic({ ...query, architecture: 'sm_120' });
    if (shape !== `m16n8k${arithmetic.k}`) return unknown;
    return { k: arithmetic.k, types: { a, b, c }, arithmetic };
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
}

function factorOperand(
  data: ResolvedOperand | undefined,
  selector: ResolvedOperand | undefined,
): FactorOperand | null {
  const [word, ...others] = data === undefined ? [] : elementsOf(data);
  const [byte, thread, ...more] = selector?.kind === 'vector' ? selector.elements : [];
  if (word?.kind !== 'register' || word.slot.width !== 32 || others.length > 0) return null;
  if (byte === undefined || thread === undefined || more.length > 0) return null;
  return { slot: word.slot, byte, thread };
}

/** The value that an operand has in all lanes; null where lanes differ. */
function commonNumber(registers: WarpRegisters, operand: ResolvedOperand): number | null {
  const value = operandNumber(registers, operand, 0);
  for (let lane = 1; lane < warpLanes; lane++)
    if (operandNumber(registers, operand, lane) !== value) return null;
  return value;
}

/**
 * The values of a selector, or their fault. Source: PTX ISA, "Block Scaling for mma.sync"; ptxas 13.4 takes these and no others.
 *
 * @param perRow number of factors of a row
 */
function selectorOf(
  registers: WarpRegisters,
  side: Side,
  { byte, thread }: FactorOperand,
  perRow: number,
): Selector | string {
  const [byteId, threadId] = [commonNumber(registers, byte), commonNumber(registers, thread)];
  const bytes = [0, 1, 2, 3].filter((at) => at % perRow === 0);
  const { threads } = sides[side];
  if (byteId === null || !bytes.includes(byteId))
    return `byte-id-${side} is ${byteId ?? 'not the same in all lanes'}; ${bytes.join(', ')} is due`;
  if (threadId === null || threadId >= threads)
    return `thread-id-${side} is ${threadId ?? 'not the same in all lanes'}; 0 to ${threads - 1} is due`;
  return { byte: byteId, thread: threadId };
}

/**
 * The factors [rows][perRow] in words of all lanes: those of row r of A in lane 4·(r mod 8) + 2·thread-id + ⌊r / 8⌋, those of column c of
 * B in lane 4·c + thread-id, in ascending k from byte byte-id on. Sources: PTX ISA, "Block Scaling for mma.sync", whose figures show it;
 * the layouts of CUTLASS' SM120 atoms and of Triton; others have probed the same on a GPU.
 */
function gatherFactors(
  words: ArrayLike<number>,
  side: Side,
  { byte, thread }: Selector,
  perRow: number,
): Uint8Array {
  const factors = new Uint8Array(sides[side].count * perRow);
  for (let i = 0; i < factors.length; i++) {
    const row = Math.floor(i / perRow);
    const holder = side === 'a' ? 2 * thread + (row >> 3) : thread;
    factors[i] = words[4 * (row % 8) + holder] >>> (8 * (byte + (i % perRow)));
  }
  return factors;
}

/** The factors with their tags, where values are followed. */
function tracedFactors(
  { followed }: WarpRegisters,
  patterns: Uint8Array,
  { scale, block }: BlockScaledArithmetic,
  tagsIn: (plane: WarpRegisters) => Uint8Array,
): TracedScales {
  const [p, q, r, s] = followed?.planes.map(tagsIn) ?? [];
  return { patterns, tags: followed && [p, q, r, s], format: scale, block };
}

/** The operation of an `mma.sync` with scale factors, or the missing feature of its form. */
export function lowerScaledMma(
  architecture: Architecture,
  { modifiers, operands, opcode, site }: InstructionRequest,
): WarpOperation | Unsupported {
  const form = formOf(architecture, modifiers);
  if (typeof form === 'string') return { unsupported: form };
  const { k, types, arithmetic } = form;
  const bits = arithmetic.kind === 'mxf8f6f4' ? 8 : 4;
  const layouts = { a: layoutOfA(rows, k, bits), b: layoutOfB(k, bits), c: layoutOfC(rows, 32) };
  const matrices = matricesOf(operands, types, layouts);
  if (typeof matrices === 'string') return wrongOperands(matrices);
  const [ofA, ofB] = [
    factorOperand(operands[4], operands[5]),
    factorOperand(operands[6], operands[7]),
  ];
  if (ofA === null || ofB === null || operands.length !== 8)
    return wrongOperands('D, A, B, C, factors of A, {byte, thread}, factors of B, {byte, thread}');
  const [aFormat, bFormat] = [types.a, types.b] as readonly OperandFormatName[];
  const [a, bTransposed] = [new Uint8Array(rows * k), new Uint8Array(columns * k)];
  const c = new Uint32Array(rows * columns);
  const perRow = k / arithmetic.block;
  const product = {
    shape: { m: rows, k },
    layouts,
    formats: [aFormat, bFormat, 'fp32'],
    execute: () => {},
  } as const;
  const mnemonic = [opcode, ...modifiers].join('.');
  const selectors = [ofA.byte, ofA.thread, ofB.byte, ofB.thread].flatMap((one) =>
    one.kind === 'register' ? [one.slot] : [],
  );
  return {
    converged: 'warp',
    meaning: 'is',
    tracesItself: true,
    writes: slotsIn(matrices.d),
    reads: [
      ...slotsIn([...matrices.a, ...matrices.b, ...matrices.c]),
      ofA.slot,
      ofB.slot,
      ...selectors,
    ],
    execute: (registers, lanes) => {
      const factorsOf = (side: Side, operand: FactorOperand): TracedScales | string => {
        const selector = selectorOf(registers, side, operand, perRow);
        if (typeof selector === 'string') return selector;
        const inPlane = (plane: WarpRegisters) =>
          gatherFactors(plane.words(operand.slot), side, selector, perRow);
        return tracedFactors(registers, inPlane(registers), arithmetic, inPlane);
      };
      const [aScales, bScales] = [factorsOf('a', ofA), factorsOf('b', ofB)];
      if (typeof aScales === 'string') return aScales;
      if (typeof bScales === 'string') return bScales;
      const scales = { a: aScales, b: bScales };
      const trace = traceMma(registers, product, matrices, { mnemonic, site, scales });
      gather(registers, matrices.a, layouts.a, a);
      gather(registers, matrices.b, layouts.b, bTransposed);
      gather(registers, matrices.c, layouts.c, c);
      if (bits === 8) {
        unpad(aFormat, a);
        unpad(bFormat, bTransposed);
      }
      executeBlockScaledProduct(arithmetic, {
        ...{ m: rows, n: columns, aFormat, bFormat, a, bTransposed, c },
        aScales: aScales.patterns,
        bScales: bScales.patterns,
      });
      scatter(registers, matrices.d, layouts.c, c);
      trace?.();
      return faultOfLanes(lanes);
    },
  };
}
