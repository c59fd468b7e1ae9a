import type {
  BlockScaledKind,
  OperandFormatName,
  ScaleFormatName,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import type { Major } from '../../memory/index.js';
import type { MmaAccumulator, MmaFormatName } from './mma-elements.js';

/** What instruction descriptors of dense and of block-scaled instructions have alike. */
interface SharedDescriptor<Kind, Name> {
  readonly kind: Kind;
  readonly a: Name;
  readonly b: Name;
  readonly negateA: boolean;
  readonly negateB: boolean;
  /** K: not transposed. */
  readonly aMajor: Major;
  readonly bMajor: Major;
  readonly m: number;
  readonly n: number;
}

/** The kinds of tcgen05.mma without scale factors. */
export type MmaKind = 'f16' | 'tf32' | 'f8f6f4' | 'i8';

/** An instruction descriptor of a dense tcgen05.mma, as data. */
export interface InstructionDescriptor extends SharedDescriptor<MmaKind, MmaFormatName> {
  /** The format of D. */
  readonly accumulator: MmaAccumulator;
  /** For kind::i8: whether D saturates at the ends of its range. */
  readonly saturates: boolean;
}

/** An instruction descriptor of a dense block-scaled tcgen05.mma, as data. */
export interface ScaledDescriptor extends SharedDescriptor<BlockScaledKind, OperandFormatName> {
  readonly scale: ScaleFormatName;
  /** SFA_ID and SFB_ID: the byte of a word of tensor memory from which on the factors of a row lie. */
  readonly aScaleId: number;
  readonly bScaleId: number;
}

/** The codes of some names. */
type Codes<Name extends string> = Partial<Record<Name, number>>;

const floatCodes = { e4m3: 0, e5m2: 1, e2m3: 3, e3m2: 4, e2m1: 5 };
const operandCodes: Readonly<Record<MmaKind, Codes<MmaFormatName>>> = {
  f16: { fp16: 0, bf16: 1 },
  tf32: { tf32: 2 },
  f8f6f4: floatCodes,
  i8: { u8: 0, s8: 1 },
};

const fourBits = { e2m1: 1 };
const scaledOperandCodes: Readonly<Record<BlockScaledKind, Codes<OperandFormatName>>> = {
  mxf8f6f4: floatCodes,
  mxf4: fourBits,
  mxf4nvf4: fourBits,
};

const [fp16, fp32, s32] = [{ fp16: 0 }, { fp32: 1 }, { s32: 2 }];
const accumulatorCodes: Readonly<Record<MmaKind, Codes<MmaAccumulator>>> = {
  f16: { ...fp16, ...fp32 },
  tf32: fp32,
  f8f6f4: { ...fp16, ...fp32 },
  i8: s32,
};

/** A field: lowest bit and bits. */
type Field = readonly [first: number, bits: number];

/** The fields of every descriptor. */
const fields = {
  sparsity: [2, 1],
  a: [7, 3],
  /** Bits 10 and 11 for kind::mxf4 and kind::mxf4nvf4; bit 12 is reserved there. */
  b: [10, 3],
  negateA: [13, 1],
  negateB: [14, 1],
  transposeA: [15, 1],
  transposeB: [16, 1],
  /** In units of 8. */
  n: [17, 6],
  /** In units of 16. */
  m: [24, 5],
} as const satisfies Readonly<Record<string, Field>>;

/** The other fields of dense instructions; what is left is 0 in one without .ws. */
const denseFields = { saturation: [3, 1], accumulator: [4, 2] } as const;

/** The other fields of block-scaled instructions. */
const scaledFields = {
  bScaleId: [4, 2],
  scale: [23, 1],
  aScaleId: [29, 2],
  /** K = 96 of kind::mxf4 and kind::mxf4nvf4, which sm_103a has. */
  longK: [31, 1],
} as const;

/** Reads the fields of a word of this kind. @throws RequestError for a sparse instruction */
function openDescriptor(word: number, kind: MmaKind | BlockScaledKind) {
  const field = ([first, bits]: Field): number => (word >>> first) & (2 ** bits - 1);
  const wrong = (what: string): RequestError =>
    new RequestError(`instruction descriptor 0x${(word >>> 0).toString(16)} ${what}`);
  const nameOf = <Name extends string>(codes: Codes<Name>, code: number, what: string): Name => {
    const found = Object.entries(codes).find(([, value]) => value === code);
    if (found === undefined)
      throw wrong(
        `has code ${code} for ${what}, which kind::${kind} does not have; pass the kind that it was made for`,
      );
    return found[0] as Name;
  };
  const major = (place: Field): Major => (field(place) === 1 ? 'mn' : 'k');
  if (field(fields.sparsity) !== 0)
    throw wrong('is of a sparse instruction, which is not modelled; pass a dense one');
  const shared = {
    negateA: field(fields.negateA) === 1,
    negateB: field(fields.negateB) === 1,
    aMajor: major(fields.transposeA),
    bMajor: major(fields.transposeB),
    m: field(fields.m) * 16,
    n: field(fields.n) * 8,
  };
  return { field, wrong, nameOf, shared };
}

/**
 * The descriptor of a word of this kind, a field of the instruction and not of the word. Throws a
 * RequestError for codes that the kind does not have and for a sparse instruction; reserved bits and
 * the shift of .ws are ignored.
 */
export function decodeInstructionDescriptor(word: number, kind: MmaKind): InstructionDescriptor {
  const { field, nameOf, shared } = openDescriptor(word, kind);
  return {
    kind,
    accumulator: nameOf(accumulatorCodes[kind], field(denseFields.accumulator), 'D'),
    saturates: field(denseFields.saturation) === 1,
    a: nameOf(operandCodes[kind], field(fields.a), 'A'),
    b: nameOf(operandCodes[kind], field(fields.b), 'B'),
    ...shared,
  };
}

/** The descriptor of a word. Throws a RequestError for codes that the kind does not have, a sparse instruction and K = 96. */
export function decodeScaledDescriptor(word: number, kind: BlockScaledKind): ScaledDescriptor {
  const { field, wrong, nameOf, shared } = openDescriptor(word, kind);
  if (field(scaledFields.longK) !== 0)
    throw wrong('has K = 96, whose scale factors are not modelled; take K = 64');
  const codes = scaledOperandCodes[kind];
  const bCode = kind === 'mxf8f6f4' ? field(fields.b) : field(fields.b) & 3;
  return {
    kind,
    a: nameOf(codes, field(fields.a), 'A'),
    b: nameOf(codes, bCode, 'B'),
    scale: field(scaledFields.scale) === 1 ? 'ue8m0' : 'ue4m3',
    aScaleId: field(scaledFields.aScaleId),
    bScaleId: field(scaledFields.bScaleId),
    ...shared,
  };
}
