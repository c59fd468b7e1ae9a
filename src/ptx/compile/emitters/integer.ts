import type { Expression } from '../webassembly/function-body.js';
import { highWords, i32x4, i64x2, v128 } from '../webassembly/vectors.js';
import { type Emitter, onEachVector, onWords, type VectorFunction } from './emitter.js';

/** The low 16 bits of each word. */
export function low16(a: Expression): Expression {
  return v128.and(a, i32x4.splat(0xffff));
}

/** The low 16 bits of each word, sign-extended. */
export function signed16(a: Expression): Expression {
  return i32x4.shrS(i32x4.shl(a, 16), 16);
}

type Pairwise = (a: Expression, b: Expression) => Expression;

const signBit64 = i64x2.splat(1n << 63n);

/** A comparison of signed 64-bit lanes as one of unsigned ones. */
export function unsigned64(compare: Pairwise): Pairwise {
  return (a, b) => compare(v128.xor(a, signBit64), v128.xor(b, signBit64));
}

/** Results whose bits do not depend on the sign, of 16, 32 and 64 bits. */
const eitherSign: readonly {
  readonly opcode: string;
  readonly narrow: Pairwise;
  readonly wide: Pairwise;
}[] = [
  { opcode: 'add', narrow: i32x4.add, wide: i64x2.add },
  { opcode: 'sub', narrow: i32x4.sub, wide: i64x2.sub },
  { opcode: 'mul.lo', narrow: i32x4.mul, wide: i64x2.mul },
];

const sumsAndProducts: readonly Emitter[] = eitherSign.flatMap(({ opcode, narrow, wide }) =>
  ['s', 'u'].flatMap((sign): Emitter[] => [
    onWords(`${opcode}.${sign}16`, 2, (_, a, b) => low16(narrow(a, b))),
    onWords(`${opcode}.${sign}32`, 2, (_, a, b) => narrow(a, b)),
    onEachVector(`${opcode}.${sign}64`, 2, (_, a, b) => wide(a, b)),
  ]),
);

const multiplyAdds: readonly Emitter[] = ['s', 'u'].flatMap((sign): Emitter[] => [
  onWords(`mad.lo.${sign}16`, 3, (_, a, b, c) => low16(i32x4.add(i32x4.mul(a, b), c))),
  onWords(`mad.lo.${sign}32`, 3, (_, a, b, c) => i32x4.add(i32x4.mul(a, b), c)),
  onEachVector(`mad.lo.${sign}64`, 3, (_, a, b, c) => i64x2.add(i64x2.mul(a, b), c)),
]);

/** Products of twice the width, and their high halves. */
const wideProducts: readonly Emitter[] = [
  {
    sign: 's',
    extended16: signed16,
    low: i64x2.extmulLowI32x4S,
    high: i64x2.extmulHighI32x4S,
    shiftedBy16: (a: Expression) => low16(i32x4.shrS(a, 16)),
  },
  {
    sign: 'u',
    extended16: (a: Expression) => a,
    low: i64x2.extmulLowI32x4U,
    high: i64x2.extmulHighI32x4U,
    shiftedBy16: (a: Expression) => i32x4.shrU(a, 16),
  },
].flatMap(({ sign, extended16, low, high, shiftedBy16 }): Emitter[] => {
  const product16: Pairwise = (a, b) => i32x4.mul(extended16(a), extended16(b));
  const highProduct: Pairwise = (a, b) => highWords(low(a, b), high(a, b));
  return [
    onWords(`mul.wide.${sign}16`, 2, (_, a, b) => product16(a, b)),
    onWords(`mad.wide.${sign}16`, 3, (_, a, b, c) => i32x4.add(product16(a, b), c)),
    onWords(`mul.hi.${sign}16`, 2, (_, a, b) => shiftedBy16(product16(a, b))),
    onWords(`mul.hi.${sign}32`, 2, (_, a, b) => highProduct(a, b)),
    onWords(`mad.hi.${sign}32`, 3, (_, a, b, c) => i32x4.add(highProduct(a, b), c)),
    {
      name: `mul.wide.${sign}32`,
      sources: 2,
      emit: (_, { vectors: [a] }, { vectors: [b] }) => [[low(a, b), high(a, b)]],
    },
    {
      name: `mad.wide.${sign}32`,
      sources: 3,
      emit: (_, { vectors: [a] }, { vectors: [b] }, { vectors: [first, second] }) => [
        [i64x2.add(low(a, b), first), i64x2.add(high(a, b), second)],
      ],
    },
  ];
});

/** The smaller or larger of 64-bit lanes by a comparison that says whether a is larger. */
function extremum64(isLarger: Pairwise, isMaximum: boolean): VectorFunction {
  return (body, a, b) => {
    const larger = body.keep(isLarger(a, b));
    return isMaximum ? v128.bitselect(a, b, larger) : v128.bitselect(b, a, larger);
  };
}

const extrema: readonly Emitter[] = [
  { opcode: 'min', signed: i32x4.minS, unsigned: i32x4.minU },
  { opcode: 'max', signed: i32x4.maxS, unsigned: i32x4.maxU },
].flatMap(({ opcode, signed, unsigned }): Emitter[] => {
  const isMaximum = opcode === 'max';
  return [
    onWords(`${opcode}.s16`, 2, (_, a, b) => low16(signed(signed16(a), signed16(b)))),
    onWords(`${opcode}.u16`, 2, (_, a, b) => unsigned(a, b)),
    onWords(`${opcode}.s32`, 2, (_, a, b) => signed(a, b)),
    onWords(`${opcode}.u32`, 2, (_, a, b) => unsigned(a, b)),
    onEachVector(`${opcode}.s64`, 2, extremum64(i64x2.gtS, isMaximum)),
    onEachVector(`${opcode}.u64`, 2, extremum64(unsigned64(i64x2.gtS), isMaximum)),
  ];
});

const signs: readonly Emitter[] = [
  onWords('neg.s16', 1, (_, a) => low16(i32x4.neg(a))),
  onWords('neg.s32', 1, (_, a) => i32x4.neg(a)),
  onEachVector('neg.s64', 1, (_, a) => i64x2.neg(a)),
  onWords('abs.s16', 1, (_, a) => low16(i32x4.abs(signed16(a)))),
  onWords('abs.s32', 1, (_, a) => i32x4.abs(a)),
  onEachVector('abs.s64', 1, (_, a) => i64x2.abs(a)),
];

/** Integer arithmetic of 16, 32 and 64 bits, which wraps around. */
export const integerEmitters: readonly Emitter[] = [
  ...sumsAndProducts,
  ...multiplyAdds,
  ...wideProducts,
  ...extrema,
  ...signs,
];
