import {
  type Expression,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  lowWords,
  v128,
} from '../../../isa/webassembly/index.js';
import {
  type Emitter,
  onEachVector,
  onWords,
  type VectorFunction,
  type Vectors,
} from './emitter.js';

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

/** A comparison of unsigned 64-bit lanes, made from one of signed lanes. */
export function unsigned64(compare: Pairwise): Pairwise {
  return (a, b) => compare(v128.xor(a, signBit64), v128.xor(b, signBit64));
}

/** Results of 16, 32 and 64 bits whose bits do not depend on the sign. */
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

/** The smaller or larger of 64-bit lanes, by a comparison that tells whether a is larger. */
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

/** |a − b| + c. */
const absoluteDifferences: readonly Emitter[] = [
  { type: 's32', larger: i32x4.maxS, smaller: i32x4.minS },
  { type: 'u32', larger: i32x4.maxU, smaller: i32x4.minU },
].map(({ type, larger, smaller }) =>
  onWords(`sad.${type}`, 3, (_, a, b, c) => i32x4.add(c, i32x4.sub(larger(a, b), smaller(a, b)))),
);

/** `.sat`: the nearest number of s32, by the sign of the first operand where the result has the wrong one. */
const saturating: readonly Emitter[] = [
  { opcode: 'add', compute: i32x4.add, second: v128.xor },
  {
    opcode: 'sub',
    compute: i32x4.sub,
    second: (b: Expression, result: Expression) => v128.not(v128.xor(b, result)),
  },
].map(({ opcode, compute, second }) =>
  onWords(`${opcode}.sat.s32`, 2, (body, a, b) => {
    const result = body.keep(compute(a, b));
    const isWrong = i32x4.shrS(v128.and(v128.xor(a, result), second(b, result)), 31);
    const limit = v128.xor(i32x4.shrS(a, 31), i32x4.splat(0x7fffffff));
    return v128.bitselect(limit, result, isWrong);
  }),
);

/** The high 64 bits of an unsigned product, from the products of 32-bit halves. */
function highProduct64(body: FunctionBody, a: Vectors, b: Vectors): Vectors {
  const [aLow, aHigh] = [lowWords(a[0], a[1]), highWords(a[0], a[1])].map(body.keep);
  const [bLow, bHigh] = [lowWords(b[0], b[1]), highWords(b[0], b[1])].map(body.keep);
  const low32 = i64x2.splat(0xffffffffn);
  return [i64x2.extmulLowI32x4U, i64x2.extmulHighI32x4U].map((product) => {
    const first = body.keep(i64x2.add(product(aLow, bHigh), i64x2.shrU(product(aLow, bLow), 32)));
    const second = i64x2.add(product(aHigh, bLow), v128.and(first, low32));
    return i64x2.add(
      i64x2.add(product(aHigh, bHigh), i64x2.shrU(first, 32)),
      i64x2.shrU(second, 32),
    );
  });
}

/** The high 64 bits of a signed product: a negative factor counts as 2^64 more than its value. */
function highSigned64(body: FunctionBody, a: Vectors, b: Vectors): Vectors {
  return highProduct64(body, a, b).map((high, i) =>
    i64x2.sub(
      i64x2.sub(high, v128.and(i64x2.shrS(a[i], 63), b[i])),
      v128.and(i64x2.shrS(b[i], 63), a[i]),
    ),
  );
}

const highProducts64: readonly Emitter[] = [
  { type: 'u64', high: highProduct64 },
  { type: 's64', high: highSigned64 },
].flatMap(({ type, high }): Emitter[] => [
  {
    name: `mul.hi.${type}`,
    sources: 2,
    emit: (body, a, b) => [high(body, a.vectors, b.vectors)],
  },
  {
    name: `mad.hi.${type}`,
    sources: 3,
    emit: (body, a, b, c) => [
      high(body, a.vectors, b.vectors).map((vector, i) => i64x2.add(vector, c.vectors[i])),
    ],
  },
]);

/** Integer arithmetic of 16, 32 and 64 bits, which wraps around. */
export const integerEmitters: readonly Emitter[] = [
  ...sumsAndProducts,
  ...multiplyAdds,
  ...wideProducts,
  ...extrema,
  ...signs,
  ...absoluteDifferences,
  ...saturating,
  ...highProducts64,
];
