import { type Architecture, type OperandFormatName } from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import {
  doubleMma,
  type IntegerOperand,
  integerMma,
  type MmaProduct,
  type MmaRegisters,
  type MmaShape,
  tensorCoreMma,
} from './mma-product.js';
import { elementsOf, wrongOperands } from '../operands.js';
import type { Slot } from '../slot.js';
import { type FragmentSource, immediateWord } from './mma-fragment.js';
import { maskText } from './operands.js';
import { traceMma } from './trace-mma.js';

/** The form of the instruction in the text: `m16n8k16.row.col.f32.bf16.bf16.f32`. */
interface Form {
  readonly shape: string;
  readonly d: string;
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly saturates: boolean;
  /** The operation of `and.popc` and `xor.popc` on elements of one bit. */
  readonly bitOperation: 'and' | 'xor' | null;
}

/** The form of a dense `mma.sync` without a kind; null for others. */
function formOf(modifiers: readonly string[]): Form | null {
  const saturates = modifiers.includes('satfinite');
  const rest = modifiers.filter((modifier) => modifier !== 'satfinite');
  const [, aligned, shape, row, col, d, a, b, c, operation, popc] = rest;
  if (aligned !== 'aligned' || row !== 'row' || col !== 'col' || c === undefined) return null;
  const isBits = a === 'b1' && (operation === 'and' || operation === 'xor') && popc === 'popc';
  if (rest.length !== (isBits ? 11 : 9)) return null;
  return { shape, d, a, b, c, saturates, bitOperation: isBits ? operation : null };
}

const floatFormats: Readonly<Record<string, OperandFormatName>> = {
  f16: 'fp16',
  bf16: 'bf16',
  tf32: 'tf32',
  e4m3: 'e4m3',
  e5m2: 'e5m2',
};
const integerFormats: Readonly<Record<string, IntegerOperand>> = {
  s8: { bits: 8, isSigned: true },
  u8: { bits: 8, isSigned: false },
  s4: { bits: 4, isSigned: true },
  u4: { bits: 4, isSigned: false },
  b1: { bits: 1, isSigned: false },
};

/** The shapes of integers and fp64 by the bits of an element. Source: PTX ISA, table of shapes of `mma`. */
const shapes: Readonly<Record<1 | 4 | 8 | 64, readonly string[]>> = {
  1: ['m8n8k128', 'm16n8k128', 'm16n8k256'],
  4: ['m8n8k32', 'm16n8k32', 'm16n8k64'],
  8: ['m8n8k16', 'm16n8k16', 'm16n8k32'],
  64: ['m8n8k4', 'm16n8k4', 'm16n8k8', 'm16n8k16'],
};

function shapeOf(text: string): MmaShape | null {
  const match = /^m(8|16)n8k(\d+)$/.exec(text);
  return match === null ? null : { m: match[1] === '8' ? 8 : 16, k: Number(match[2]) };
}

function integerProduct(form: Form, shape: MmaShape): MmaProduct | null {
  const [a, b] = [integerFormats[form.a], integerFormats[form.b]];
  if (a === undefined || b?.bits !== a.bits || form.c !== 's32' || form.d !== 's32') return null;
  if (!shapes[a.bits].includes(form.shape)) return null;
  if ((a.bits === 1) !== (form.bitOperation !== null)) return null;
  const product = form.bitOperation ?? 'multiply';
  return integerMma(shape, { a, b, product, saturates: form.saturates });
}

/**
 * The product; null for a combination that does not exist. Throws a RequestError for products that are not modelled.
 */
function productOf(architecture: Architecture, form: Form): MmaProduct | null {
  const shape = shapeOf(form.shape);
  if (shape === null) return null;
  if (form.a in integerFormats) return integerProduct(form, shape);
  if (form.saturates || form.c !== form.d) return null;
  if (form.a === 'f64')
    return form.b === 'f64' && form.c === 'f64' && shapes[64].includes(form.shape)
      ? doubleMma(shape)
      : null;
  const formats = [floatFormats[form.a], floatFormats[form.b]] as const;
  if (formats.includes(undefined as never) || shape.m !== 16) return null;
  if (form.c !== 'f32' && form.c !== 'f16') return null;
  return tensorCoreMma(architecture, shape, formats, form.c === 'f32' ? 'fp32' : 'fp16');
}

/** A register, or an immediate in place of a register of 32 bits; null for other operands. */
function sourceOf(operand: ResolvedOperand, type: string): FragmentSource | null {
  if (operand.kind === 'register') return operand.slot;
  if (operand.kind !== 'constant' || type === 'f64') return null;
  const { format, bits } = operand;
  if (format === 'integer') return type === 'f32' ? null : immediateWord(Number(bits & wordMask));
  if (type !== 'f32') return null;
  return immediateWord(Number(format === 'f32' ? bits : float32Bits(bits)));
}

/** A constant of fp64 rounded to fp32, as PTX reads `0.` in the place of an f32. */
function float32Bits(bits: bigint): number {
  const wide = new Float64Array(BigUint64Array.of(bits).buffer)[0];
  return new Uint32Array(Float32Array.of(wide).buffer)[0];
}

/** The matrix of an operand; null where an element is not a source. */
function sourcesOf(operand: ResolvedOperand, type: string): readonly FragmentSource[] | null {
  const sources = elementsOf(operand).map((element) => sourceOf(element, type));
  return sources.every((source) => source !== null) ? sources : null;
}

function operandsOf(
  operands: readonly ResolvedOperand[],
  { a: aType, b: bType, c: cType }: Form,
): MmaRegisters | null {
  if (operands.length !== 4) return null;
  const elements = elementsOf(operands[0]);
  const d = elements.flatMap((element) =>
    element.kind === 'register' ? [element.slot] : element.kind === 'sink' ? [null] : [],
  );
  if (d.length !== elements.length) return null;
  const [a, b, c] = [aType, bType, cType].map((type, i) => sourcesOf(operands[i + 1], type));
  return a && b && c ? { d, a, b, c } : null;
}

function slotsIn(sources: readonly (FragmentSource | null)[]): Slot[] {
  return sources.flatMap((source) => (source !== null && 'offset' in source ? [source] : []));
}

const allLanes = 0xffffffff;
const wordMask = 0xffffffffn;

function lower(
  architecture: Architecture,
  { modifiers, operands, opcode, site }: InstructionRequest,
): WarpOperation | Unsupported {
  const form = formOf(modifiers);
  const name = [opcode, ...modifiers].join('.');
  if (form === null) return { unsupported: `${name}, which is no dense form without a kind` };
  let product: MmaProduct | null;
  try {
    product = productOf(architecture, form);
  } catch (error) {
    if (error instanceof RequestError) return { unsupported: error.message };
    throw error;
  }
  if (product === null) return { unsupported: `the shape and the formats of ${name}` };
  const slots = operandsOf(operands, form);
  const { a, b, c } = product.layouts;
  const fits =
    slots !== null &&
    slots.a.length === a.registers &&
    slots.b.length === b.registers &&
    slots.c.length === c.registers &&
    slots.d.length === c.registers;
  if (!fits)
    return wrongOperands(
      `D of ${c.registers}, A of ${a.registers}, B of ${b.registers} and C of ${c.registers} registers`,
    );
  const { execute } = product;
  return {
    converged: 'warp',
    meaning: 'is',
    tracesItself: true,
    writes: slotsIn(slots.d),
    reads: slotsIn([...slots.a, ...slots.b, ...slots.c]),
    execute: (registers, lanes) => {
      const trace = traceMma(registers, product, slots, { mnemonic: name, site });
      execute(registers, slots);
      trace?.();
      return lanes >>> 0 === allLanes
        ? null
        : `only the lanes ${maskText(lanes)} execute it, and it takes all 32`;
    },
  };
}

/**
 * `mma.sync` on an architecture: floating-point formats with the arithmetic of its tensor cores, fp64 by fused
 * multiply-adds, integers exactly.
 */
export function mmaInstruction(architecture: Architecture): WarpInstruction {
  return {
    name: 'mma.sync',
    meaning: 'is',
    evidence: architecture === 'sm_90' ? 'silicon' : 'published',
    source: 'PTX ISA, Warp Level Matrix Multiply-Accumulate Instructions: mma',
    lower: (request) => lower(architecture, request),
  };
}
