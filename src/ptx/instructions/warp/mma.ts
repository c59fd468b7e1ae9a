import {
  type Architecture,
  lackOf,
  type OperandFormatName,
  operandFormats,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import {
  doubleMma,
  type IntegerOperand,
  integerMma,
  type MmaProduct,
  type MmaShape,
  tensorCoreMma,
} from './mma-product.js';
import { wrongOperands } from '../operands.js';
import { faultOfLanes, matricesOf, slotsIn } from './mma-operands.js';
import { lowerScaledMma } from './scaled-mma.js';
import { traceMma } from './trace-mma.js';

/** The form of the instruction in the text: `m16n8k16.row.col.f32.bf16.bf16.f32`. */
interface Form {
  readonly shape: string;
  readonly d: string;
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly saturates: boolean;
  /** `kind::f8f6f4`: elements of 4 and 6 bits have a byte each. */
  readonly hasKind: boolean;
  /** The operation of `and.popc` and `xor.popc` on elements of one bit. */
  readonly bitOperation: 'and' | 'xor' | null;
}

const kind = 'kind::f8f6f4';

/** The form of a dense `mma.sync` without scale factors; null for others. */
function formOf(modifiers: readonly string[]): Form | null {
  const saturates = modifiers.includes('satfinite');
  const hasKind = modifiers.includes(kind);
  const rest = modifiers.filter((modifier) => modifier !== 'satfinite' && modifier !== kind);
  const [, aligned, shape, row, col, d, a, b, c, operation, popc] = rest;
  if (aligned !== 'aligned' || row !== 'row' || col !== 'col' || c === undefined) return null;
  const isBits = a === 'b1' && (operation === 'and' || operation === 'xor') && popc === 'popc';
  if (rest.length !== (isBits ? 11 : 9)) return null;
  return { shape, d, a, b, c, saturates, hasKind, bitOperation: isBits ? operation : null };
}

const floatFormats: Readonly<Record<string, OperandFormatName>> = {
  f16: 'fp16',
  bf16: 'bf16',
  tf32: 'tf32',
  e4m3: 'e4m3',
  e5m2: 'e5m2',
};
/** The formats that need `kind::f8f6f4`, whose K is 32. */
const narrowFormats: Readonly<Record<string, OperandFormatName>> = {
  e2m3: 'e2m3',
  e3m2: 'e3m2',
  e2m1: 'e2m1',
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

const isOfBytes = (format: OperandFormatName) => operandFormats[format].storageBits <= 8;

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
  const known = form.hasKind ? { ...floatFormats, ...narrowFormats } : floatFormats;
  const formats = [known[form.a], known[form.b]] as const;
  if (formats.includes(undefined as never) || shape.m !== 16) return null;
  if (form.hasKind) {
    if (form.shape !== 'm16n8k32' || !formats.every(isOfBytes)) return null;
    const lack = lackOf(architecture, `mma.sync.${kind}`);
    if (lack !== null) throw new RequestError(lack);
  }
  if (form.c !== 'f32' && form.c !== 'f16') return null;
  return tensorCoreMma(architecture, shape, formats, form.c === 'f32' ? 'fp32' : 'fp16');
}

function lower(
  architecture: Architecture,
  request: InstructionRequest,
): WarpOperation | Unsupported {
  const { modifiers, operands, opcode, site } = request;
  if (modifiers.includes('block_scale')) return lowerScaledMma(architecture, request);
  const form = formOf(modifiers);
  const name = [opcode, ...modifiers].join('.');
  if (form === null) return { unsupported: `${name}, which is no dense form` };
  let product: MmaProduct | null;
  try {
    product = productOf(architecture, form);
  } catch (error) {
    if (error instanceof RequestError) return { unsupported: error.message };
    throw error;
  }
  if (product === null) return { unsupported: `the shape and the formats of ${name}` };
  const slots = matricesOf(operands, form, product.layouts);
  if (typeof slots === 'string') return wrongOperands(slots);
  if (operands.length !== 4) return wrongOperands('D, A, B and C');
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
      return faultOfLanes(lanes);
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
