import {
  type Architecture,
  type BlockScaledArithmetic,
  createBlockScaledProduct,
  findBlockScaledArithmetic,
  lackOf,
  type OperandFormatName,
  operandFormats,
  type ScaleFormatName,
} from '../../../hardware/index.js';
import type { TracedProduct } from '../../../machine/index.js';
import { RequestError } from '../../../request-error.js';
import { blockOf, isBlockScaledKind } from '../block-scaling.js';
import { slotsOf, wrongOperands } from '../operands.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpOperation } from '../warp-instruction.js';
import type { WarpRegisters } from '../warp-registers.js';
import { gather, layoutOfA, layoutOfB, layoutOfC, scatter } from './mma-fragment.js';
import { faultOfLanes, matricesOf, slotsIn } from './mma-operands.js';
import { type MmaProduct, type MmaRegisters, unpad } from './mma-product.js';
import { type FactorOperand, factorOperand, factorsOf } from './scale-factors.js';
import { traceMma } from './trace-mma.js';

/** Rows of A; columns of B. */
const [rows, columns] = [16, 8] as const;

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

/** A product on registers of all lanes: returns the fault of its factors, or null. */
type Execute = (registers: WarpRegisters) => string | null;

function executeOf(
  { k, types, arithmetic }: Form,
  layouts: MmaProduct['layouts'],
  matrices: MmaRegisters,
  [ofA, ofB]: readonly [FactorOperand, FactorOperand],
  place: Pick<TracedProduct, 'mnemonic' | 'site'>,
): Execute {
  const [aFormat, bFormat] = [types.a, types.b] as readonly OperandFormatName[];
  const { block, scale: format, kind } = arithmetic;
  const multiply = createBlockScaledProduct(arithmetic, aFormat, bFormat);
  const [a, bTransposed] = [new Uint8Array(rows * k), new Uint8Array(columns * k)];
  const c = new Uint32Array(rows * columns);
  const traced = { shape: { m: rows, k }, layouts, formats: [aFormat, bFormat, 'fp32'] } as const;
  return (registers) => {
    const aFactors = factorsOf(registers, 'a', ofA, k / block);
    const bFactors = factorsOf(registers, 'b', ofB, k / block);
    if (typeof aFactors === 'string') return aFactors;
    if (typeof bFactors === 'string') return bFactors;
    const scales = { a: { ...aFactors, format, block }, b: { ...bFactors, format, block } };
    const trace = traceMma(registers, traced, matrices, { ...place, scales });
    gather(registers, matrices.a, layouts.a, a);
    gather(registers, matrices.b, layouts.b, bTransposed);
    gather(registers, matrices.c, layouts.c, c);
    if (kind === 'mxf8f6f4') {
      unpad(aFormat, a);
      unpad(bFormat, bTransposed);
    }
    const [aScales, bScales] = [aFactors.patterns, bFactors.patterns];
    multiply({ m: rows, n: columns, a, bTransposed, aScales, bScales, c });
    scatter(registers, matrices.d, layouts.c, c);
    trace?.();
    return null;
  };
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
  const ofA = factorOperand(operands[4], operands[5]);
  const ofB = factorOperand(operands[6], operands[7]);
  if (ofA === null || ofB === null || operands.length !== 8)
    return wrongOperands('D, A, B, C, factors of A, {byte, thread}, factors of B, {byte, thread}');
  const mnemonic = [opcode, ...modifiers].join('.');
  const execute = executeOf(form, layouts, matrices, [ofA, ofB], { mnemonic, site });
  return {
    converged: 'warp',
    meaning: 'is',
    tracesItself: true,
    writes: slotsIn(matrices.d),
    reads: [
      ...slotsIn([...matrices.a, ...matrices.b, ...matrices.c]),
      ...[ofA, ofB].flatMap(({ slot, byte, thread }) => [slot, ...slotsOf([byte, thread])]),
    ],
    execute: (registers, lanes) => execute(registers) ?? faultOfLanes(lanes),
  };
}
