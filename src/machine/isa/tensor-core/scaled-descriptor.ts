import type {
  BlockScaledKind,
  OperandFormatName,
  ScaleFormatName,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import type { Major } from '../../memory/index.js';
import { type Field, readField } from './instruction-descriptor.js';

/** An instruction descriptor of a dense block-scaled tcgen05.mma, as data. */
export interface ScaledDescriptor {
  readonly kind: BlockScaledKind;
  readonly a: OperandFormatName;
  readonly b: OperandFormatName;
  readonly scale: ScaleFormatName;
  /** SFA_ID and SFB_ID: the byte of a word of tensor memory from which on the factors of a row lie. */
  readonly aScaleId: number;
  readonly bScaleId: number;
  readonly negateA: boolean;
  readonly negateB: boolean;
  readonly aMajor: Major;
  readonly bMajor: Major;
  readonly m: number;
  readonly n: number;
}

const fields = {
  sparsity: [2, 1],
  bScaleId: [4, 2],
  a: [7, 3],
  /** Bits 10 and 11 for kind::mxf4 and kind::mxf4nvf4; bit 12 is reserved there. */
  b: [10, 3],
  negateA: [13, 1],
  negateB: [14, 1],
  transposeA: [15, 1],
  transposeB: [16, 1],
  /** In units of 8. */
  n: [17, 6],
  scale: [23, 1],
  /** In units of 16. */
  m: [24, 5],
  aScaleId: [29, 2],
  /** K = 96 of kind::mxf4 and kind::mxf4nvf4, which sm_103a has. */
  longK: [31, 1],
} as const satisfies Readonly<Record<string, Field>>;

const fourBits: Partial<Record<OperandFormatName, number>> = { e2m1: 1 };
const operandCodes: Readonly<Record<BlockScaledKind, Partial<Record<OperandFormatName, number>>>> =
  {
    mxf8f6f4: { e4m3: 0, e5m2: 1, e2m3: 3, e3m2: 4, e2m1: 5 },
    mxf4: fourBits,
    mxf4nvf4: fourBits,
  };

/** The descriptor of a word. Throws a RequestError for codes that the kind does not have, a sparse instruction and K = 96. */
export function decodeScaledDescriptor(word: number, kind: BlockScaledKind): ScaledDescriptor {
  const field = (place: Field): number => readField(word, place);
  const wrong = (what: string): RequestError =>
    new RequestError(`instruction descriptor 0x${(word >>> 0).toString(16)} ${what}`);
  const formatOf = (code: number, what: string): OperandFormatName => {
    const found = Object.entries(operandCodes[kind]).find(([, value]) => value === code);
    if (found === undefined)
      throw wrong(
        `has code ${code} for ${what}, which kind::${kind} does not have; pass the kind that it was made for`,
      );
    return found[0] as OperandFormatName;
  };
  if (field(fields.sparsity) !== 0)
    throw wrong('is of a sparse instruction, which is not modelled; pass a dense one');
  if (field(fields.longK) !== 0)
    throw wrong('has K = 96, whose scale factors are not modelled; take K = 64');
  const major = (place: Field): Major => (field(place) === 1 ? 'mn' : 'k');
  const bCode = kind === 'mxf8f6f4' ? field(fields.b) : field(fields.b) & 3;
  return {
    kind,
    a: formatOf(field(fields.a), 'A'),
    b: formatOf(bCode, 'B'),
    scale: field(fields.scale) === 1 ? 'ue8m0' : 'ue4m3',
    aScaleId: field(fields.aScaleId),
    bScaleId: field(fields.bScaleId),
    negateA: field(fields.negateA) === 1,
    negateB: field(fields.negateB) === 1,
    aMajor: major(fields.transposeA),
    bMajor: major(fields.transposeB),
    m: field(fields.m) * 16,
    n: field(fields.n) * 8,
  };
}
