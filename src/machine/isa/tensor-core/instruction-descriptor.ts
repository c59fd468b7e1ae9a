import { RequestError } from '../../../request-error.js';
import type { Major } from '../../memory/index.js';
import type { MmaAccumulator, MmaFormatName } from './mma-elements.js';

/** The kinds of tcgen05.mma without scale factors. */
export type MmaKind = 'f16' | 'tf32' | 'f8f6f4' | 'i8';

/** An instruction descriptor of a dense tcgen05.mma, as data. */
export interface InstructionDescriptor {
  readonly kind: MmaKind;
  /** The format of D. */
  readonly accumulator: MmaAccumulator;
  /** For kind::i8: whether D saturates at the ends of its range. */
  readonly saturates: boolean;
  readonly a: MmaFormatName;
  readonly b: MmaFormatName;
  readonly negateA: boolean;
  readonly negateB: boolean;
  /** K: not transposed. */
  readonly aMajor: Major;
  readonly bMajor: Major;
  readonly m: number;
  readonly n: number;
}

/** Codes of the operand formats of each kind. */
const operandCodes: Readonly<Record<MmaKind, Partial<Record<MmaFormatName, number>>>> = {
  f16: { fp16: 0, bf16: 1 },
  tf32: { tf32: 2 },
  f8f6f4: { e4m3: 0, e5m2: 1, e2m3: 3, e3m2: 4, e2m1: 5 },
  i8: { u8: 0, s8: 1 },
};

const [fp16, fp32, s32] = [{ fp16: 0 }, { fp32: 1 }, { s32: 2 }];
const accumulatorCodes: Readonly<Record<MmaKind, Partial<Record<MmaAccumulator, number>>>> = {
  f16: { ...fp16, ...fp32 },
  tf32: fp32,
  f8f6f4: { ...fp16, ...fp32 },
  i8: s32,
};

/** A field: lowest bit and bits. */
export type Field = readonly [first: number, bits: number];

/** The value of a field of a word. */
export function readField(word: number, [first, bits]: Field): number {
  return (word >>> first) & (2 ** bits - 1);
}

/** The fields. All others are 0 in a dense instruction without .ws. */
const fields = {
  sparsity: [2, 1],
  saturation: [3, 1],
  accumulator: [4, 2],
  a: [7, 3],
  b: [10, 3],
  negateA: [13, 1],
  negateB: [14, 1],
  transposeA: [15, 1],
  transposeB: [16, 1],
  /** In units of 8. */
  n: [17, 6],
  /** In units of 16. */
  m: [24, 5],
} as const;

/**
 * The descriptor of a word of this kind, a field of the instruction and not of the word. Throws a
 * RequestError for codes that the kind does not have and for a sparse instruction; reserved bits and
 * the shift of .ws are ignored.
 */
export function decodeInstructionDescriptor(word: number, kind: MmaKind): InstructionDescriptor {
  const field = (place: Field): number => readField(word, place);
  const nameOf = <Name extends string>(
    codes: Partial<Record<Name, number>>,
    code: number,
    what: string,
  ): Name => {
    const found = Object.entries(codes).find(([, value]) => value === code);
    if (found === undefined)
      throw new RequestError(
        `instruction descriptor 0x${(word >>> 0).toString(16)} has code ${code} for ${what}, which kind::${kind} does not have; pass the kind that it was made for`,
      );
    return found[0] as Name;
  };
  if (field(fields.sparsity) !== 0)
    throw new RequestError(
      `instruction descriptor 0x${(word >>> 0).toString(16)} is of a sparse instruction, which is not modelled; pass a dense one`,
    );
  const major = (place: readonly [number, number]): Major => (field(place) === 1 ? 'mn' : 'k');
  return {
    kind,
    accumulator: nameOf(accumulatorCodes[kind], field(fields.accumulator), 'D'),
    saturates: field(fields.saturation) === 1,
    a: nameOf(operandCodes[kind], field(fields.a), 'A'),
    b: nameOf(operandCodes[kind], field(fields.b), 'B'),
    negateA: field(fields.negateA) === 1,
    negateB: field(fields.negateB) === 1,
    aMajor: major(fields.transposeA),
    bMajor: major(fields.transposeB),
    m: field(fields.m) * 16,
    n: field(fields.n) * 8,
  };
}
