import { bitsOfFloat32, float32Of } from '../arith/index.js';
import type { Meaning } from './instruction.js';
import { pairsOf } from './pairs.js';
import { type Row, row } from './row.js';
import { flushed, floatTypes, type FloatType } from './values/float-type.js';
import {
  chosen,
  type Emit,
  extremumRules,
  flushed as flushedCode,
  type HalfFormat,
  halfFormats,
  onWords,
} from './vectors/index.js';
import type { Expression, FunctionBody } from './webassembly/index.js';

/** The chosen modifiers, those of magnitudes apart. */
interface Modifiers {
  readonly ftz?: string;
  readonly NaN: string;
}

/** The chosen modifiers of magnitudes. */
interface MagnitudeModifiers {
  readonly abs?: string;
  readonly 'xorsign.abs'?: string;
}

/** Whether magnitudes are compared; with the sign the result has the product of the signs. */
type Magnitude = 'none' | 'without sign' | 'with sign';

type Opcode = 'min' | 'max';

function choose(opcode: Opcode, a: number, b: number, keepsNan: boolean): number {
  const result = opcode === 'max' ? Math.max(a, b) : Math.min(a, b);
  if (result === result || keepsNan) return result;
  return a === a ? a : b;
}

/**
 * The extremum of numbers of a type, with −0 less than +0. A NaN loses against a number, and wins with `.NaN`; its sign
 * counts in the product of the signs.
 */
function evaluated(opcode: Opcode, type: FloatType, modifiers: Modifiers, magnitude: Magnitude) {
  const keepsNan = modifiers.NaN !== '';
  const isFlushing = (modifiers.ftz ?? '') !== '';
  const signOf = 2 ** (type.width - 1);
  const [numberOf, bitsOf] =
    type.name === 'f32' ? [float32Of, bitsOfFloat32] : [type.numberOf, type.bitsOf];
  return (...patterns: number[]): number => {
    const operands = patterns.map((pattern) => {
      const value = numberOf(pattern);
      const kept = isFlushing ? flushed(type, value) : value;
      return magnitude === 'none' ? kept : Math.abs(kept);
    });
    const result = operands.reduce((a, b) => choose(opcode, a, b, keepsNan));
    const isNegative =
      magnitude === 'with sign' &&
      patterns.reduce((negative, pattern) => negative !== pattern >= signOf, false);
    return Number(bitsOf(isNegative ? -result : result));
  };
}

/** Of magnitudes there is no code. */
function emitted(opcode: Opcode, { ftz, NaN: nan }: Modifiers, operands: 2 | 3): Emit {
  const rule = { extremum: extremumRules[opcode], keepsNan: nan !== '' };
  const prepare = (body: FunctionBody, a: Expression): Expression =>
    ftz === '' ? a : body.keep(flushedCode(a));
  return onWords((body, a, b, c) => {
    const first = chosen(body, rule, prepare(body, a), prepare(body, b));
    return operands === 2 ? first : chosen(body, rule, first, prepare(body, c));
  });
}

function emittedHalf(opcode: Opcode, { NaN: nan }: Modifiers, format: HalfFormat): Emit {
  const rule = { extremum: extremumRules[opcode], keepsNan: nan !== '' };
  return onWords((body, a, b) =>
    format.shortened(body, chosen(body, rule, format.widened(body, a), format.widened(body, b))),
  );
}

const { f16, bf16, f32 } = floatTypes;
/** The extremum of magnitudes, with its sign, need not have the bits of an operand. */
function meaningOf({ abs = '', 'xorsign.abs': sign = '' }: MagnitudeModifiers): Meaning {
  return abs === '' && sign === '' ? 'chooses' : 'is';
}

const facts = { meaning: meaningOf, unit: 'alu' } as const;

function ofFloat32(opcode: Opcode): Row[] {
  return [
    row({
      ...facts,
      syntax: `${opcode}{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b`,
      evaluate: (modifiers) =>
        evaluated(opcode, f32, modifiers, modifiers['xorsign.abs'] === '' ? 'none' : 'with sign'),
      emit: (modifiers) => (modifiers['xorsign.abs'] === '' ? emitted(opcode, modifiers, 2) : null),
      isOfMachine: (modifiers) => modifiers['xorsign.abs'] === '',
      evidence: 'silicon',
      section: 'Floating Point Instructions',
    }),
    // From sm_100 on; taken to be two in a row, whose order makes no difference.
    row({
      ...facts,
      syntax: `${opcode}{.ftz}{.NaN}{.abs}.f32 d, a, b, c`,
      evaluate: (modifiers) =>
        evaluated(opcode, f32, modifiers, modifiers.abs === '' ? 'none' : 'without sign'),
      emit: (modifiers) => (modifiers.abs === '' ? emitted(opcode, modifiers, 3) : null),
      isOfMachine: ({ abs }) => abs === '',
      evidence: 'isa',
      section: 'Floating Point Instructions',
    }),
  ];
}

function ofHalf(opcode: Opcode): Row[] {
  const float16 = row({
    ...facts,
    syntax: `${opcode}{.ftz}{.NaN}{.xorsign.abs}.f16 d, a, b`,
    evaluate: (modifiers) =>
      evaluated(opcode, f16, modifiers, modifiers['xorsign.abs'] === '' ? 'none' : 'with sign'),
    emit: (modifiers) =>
      modifiers.ftz === '' && modifiers['xorsign.abs'] === ''
        ? emittedHalf(opcode, modifiers, halfFormats.f16)
        : null,
    evidence: 'silicon',
    section: 'Half Precision Floating Point Instructions',
  });
  const brainFloat16 = row({
    ...facts,
    syntax: `${opcode}{.NaN}{.xorsign.abs}.bf16 d, a, b`,
    evaluate: (modifiers) =>
      evaluated(opcode, bf16, modifiers, modifiers['xorsign.abs'] === '' ? 'none' : 'with sign'),
    emit: (modifiers) =>
      modifiers['xorsign.abs'] === '' ? emittedHalf(opcode, modifiers, halfFormats.bf16) : null,
    evidence: 'silicon',
    section: 'Half Precision Floating Point Instructions',
  });
  const evidence = 'silicon';
  return [
    float16,
    pairsOf(float16, { syntax: `${opcode}{.ftz}{.NaN}{.xorsign.abs}.f16x2 d, a, b`, evidence }),
    brainFloat16,
    pairsOf(brainFloat16, { syntax: `${opcode}{.NaN}{.xorsign.abs}.bf16x2 d, a, b`, evidence }),
  ];
}

/** `min` and `max` of fp32 and of half precision: subnormals are kept but for `.ftz`, and every NaN is the canonical one. */
export const extremumRows: readonly Row[] = [
  ...ofFloat32('min'),
  ...ofFloat32('max'),
  ...ofHalf('min'),
  ...ofHalf('max'),
];
