import { type Expression, type FunctionBody, type Subroutine } from './function-body.js';

// WebAssembly's SIMD instructions under the names that they have there, as functions of expressions. Numbers:
// WebAssembly Core Specification, "Vector Instructions".

const simdPrefix = 0xfd;

function simd({ code }: FunctionBody, opcode: number): void {
  code.byte(simdPrefix);
  code.unsigned(opcode);
}

type Unary = (a: Expression) => Expression;
type Binary = (a: Expression, b: Expression) => Expression;

function unary(opcode: number): Unary {
  return (a) => (body) => {
    a(body);
    simd(body, opcode);
  };
}

function binary(opcode: number): Binary {
  return (a, b) => (body) => {
    a(body);
    b(body);
    simd(body, opcode);
  };
}

/** An instruction with the number of a lane behind it. */
function ofLane(opcode: number): (a: Expression, lane: number) => Expression {
  return (a, lane) => (body) => {
    a(body);
    simd(body, opcode);
    body.code.byte(lane);
  };
}

function replacing(opcode: number): (a: Expression, lane: number, value: Expression) => Expression {
  return (a, lane, value) => (body) => {
    a(body);
    value(body);
    simd(body, opcode);
    body.code.byte(lane);
  };
}

/** The 16 bytes as they are. */
function constant(bytes: ArrayLike<number>): Expression {
  return (body) => {
    simd(body, 0x0c);
    body.code.bytes(bytes);
  };
}

/** Addresses are i32 expressions; `offset` is added to them. Nothing needs to be aligned. */
function writeAddress({ code }: FunctionBody, offset: number): void {
  code.unsigned(0);
  code.unsigned(offset);
}

export const v128 = {
  not: unary(0x4d),
  and: binary(0x4e),
  /** The bits of a that b has not. */
  andnot: binary(0x4f),
  or: binary(0x50),
  xor: binary(0x51),
  /** The bits of `a` where `mask` has ones, of `b` elsewhere. */
  bitselect:
    (a: Expression, b: Expression, mask: Expression): Expression =>
    (body) => {
      a(body);
      b(body);
      mask(body);
      simd(body, 0x52);
    },
  anyTrue: unary(0x53),
  load:
    (address: Expression, offset = 0): Expression =>
    (body) => {
      address(body);
      simd(body, 0x00);
      writeAddress(body, offset);
    },
  /** `vector` with its 16-bit lane from memory. */
  load16Lane:
    (address: Expression, offset: number, vector: Expression, lane: number): Expression =>
    (body) => {
      address(body);
      vector(body);
      simd(body, 0x55);
      writeAddress(body, offset);
      body.code.byte(lane);
    },
  /** A statement, no expression. */
  store: (body: FunctionBody, address: Expression, offset: number, value: Expression): void => {
    address(body);
    value(body);
    simd(body, 0x0b);
    writeAddress(body, offset);
  },
};

export const i8x16 = {
  swizzle: binary(0x0e),
  popcnt: unary(0x62),
  shrS: shift(0x6c),
  /** Bytes of {a, b} by their numbers, those of a first. */
  shuffle:
    (a: Expression, b: Expression, bytes: readonly number[]): Expression =>
    (body) => {
      a(body);
      b(body);
      simd(body, 0x0d);
      body.code.bytes(bytes);
    },
};

export const i16x8 = {
  extendLowI8x16S: unary(0x87),
  extendHighI8x16S: unary(0x88),
  extendLowI8x16U: unary(0x89),
  extendHighI8x16U: unary(0x8a),
  extaddPairwiseI8x16U: unary(0x7d),
};

/** The same bits, given as −2^31 to 2^31 − 1 or as 0 to 2^32 − 1, in every lane. */
function splat32(bits: number): Expression {
  const word = i32Constant(bits);
  return (body) => {
    word(body);
    simd(body, 0x11);
  };
}

function i32Constant(value: number): Expression {
  return ({ code }) => {
    code.byte(0x41);
    code.signed(value | 0);
  };
}

function splat64(bits: bigint): Expression {
  const words = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(8 * i)) & 0xffn));
  return constant([...words, ...words]);
}

export const i32x4 = {
  /** The same bits in every lane. */
  splat: splat32,
  of: (words: readonly number[]): Expression =>
    constant(new Uint8Array(Int32Array.from(words).buffer)),
  /** What an i32 expression gives, in every lane. */
  splatOf: unary(0x11),
  extractLane: ofLane(0x1b),
  replaceLane: replacing(0x1c),
  eq: binary(0x37),
  ne: binary(0x38),
  ltS: binary(0x39),
  ltU: binary(0x3a),
  gtS: binary(0x3b),
  gtU: binary(0x3c),
  leS: binary(0x3d),
  leU: binary(0x3e),
  geS: binary(0x3f),
  geU: binary(0x40),
  extaddPairwiseI16x8U: unary(0x7f),
  abs: unary(0xa0),
  neg: unary(0xa1),
  shl: shift(0xab),
  shrS: shift(0xac),
  shrU: shift(0xad),
  add: binary(0xae),
  sub: binary(0xb1),
  mul: binary(0xb5),
  minS: binary(0xb6),
  minU: binary(0xb7),
  maxS: binary(0xb8),
  maxU: binary(0xb9),
  truncSatF32x4S: unary(0xf8),
  dotI16x8S: binary(0xba),
  truncSatF32x4U: unary(0xf9),
  truncSatF64x2SZero: unary(0xfc),
  truncSatF64x2UZero: unary(0xfd),
};

export const i64x2 = {
  splat: splat64,
  extractLane: ofLane(0x1d),
  replaceLane: replacing(0x1e),
  abs: unary(0xc0),
  neg: unary(0xc1),
  extendLowI32x4S: unary(0xc7),
  extendHighI32x4S: unary(0xc8),
  extendLowI32x4U: unary(0xc9),
  extendHighI32x4U: unary(0xca),
  shl: shift(0xcb),
  shrS: shift(0xcc),
  shrU: shift(0xcd),
  add: binary(0xce),
  sub: binary(0xd1),
  mul: binary(0xd5),
  eq: binary(0xd6),
  ne: binary(0xd7),
  ltS: binary(0xd8),
  gtS: binary(0xd9),
  leS: binary(0xda),
  geS: binary(0xdb),
  extmulLowI32x4S: binary(0xdc),
  extmulHighI32x4S: binary(0xdd),
  extmulLowI32x4U: binary(0xde),
  extmulHighI32x4U: binary(0xdf),
};

export const f32x4 = {
  eq: binary(0x41),
  ne: binary(0x42),
  lt: binary(0x43),
  gt: binary(0x44),
  le: binary(0x45),
  ge: binary(0x46),
  demoteF64x2Zero: unary(0x5e),
  ceil: unary(0x67),
  floor: unary(0x68),
  trunc: unary(0x69),
  nearest: unary(0x6a),
  sqrt: unary(0xe3),
  add: binary(0xe4),
  sub: binary(0xe5),
  mul: binary(0xe6),
  div: binary(0xe7),
  min: binary(0xe8),
  max: binary(0xe9),
  /** b where b < a, else a. */
  pmin: binary(0xea),
  /** b where a < b, else a. */
  pmax: binary(0xeb),
  convertI32x4S: unary(0xfa),
  convertI32x4U: unary(0xfb),
};

export const f64x2 = {
  splat: (value: number): Expression =>
    splat64(new BigUint64Array(Float64Array.of(value).buffer)[0]),
  eq: binary(0x47),
  ne: binary(0x48),
  lt: binary(0x49),
  gt: binary(0x4a),
  le: binary(0x4b),
  ge: binary(0x4c),
  promoteLowF32x4: unary(0x5f),
  ceil: unary(0x74),
  floor: unary(0x75),
  trunc: unary(0x7a),
  nearest: unary(0x94),
  convertLowI32x4S: unary(0xfe),
  convertLowI32x4U: unary(0xff),
  pmin: binary(0xf6),
  pmax: binary(0xf7),
  abs: unary(0xec),
  neg: unary(0xed),
  sqrt: unary(0xef),
  add: binary(0xf0),
  sub: binary(0xf1),
  mul: binary(0xf2),
  div: binary(0xf3),
};

/** Shifts of all lanes by one constant amount. */
function shift(opcode: number): (a: Expression, amount: number) => Expression {
  return (a, amount) => (body) => {
    a(body);
    i32.constant(amount)(body);
    simd(body, opcode);
  };
}

function plain(opcode: number): Binary {
  return (a, b) => (body) => {
    a(body);
    b(body);
    body.code.byte(opcode);
  };
}

function plainUnary(opcode: number): Unary {
  return (a) => (body) => {
    a(body);
    body.code.byte(opcode);
  };
}

export const i32 = {
  constant: i32Constant,
  eqz: plainUnary(0x45),
  ne: plain(0x47),
  clz: plainUnary(0x67),
  add: plain(0x6a),
  and: plain(0x71),
  shl: plain(0x74),
  shrU: plain(0x76),
  wrapI64: plainUnary(0xa7),
};

export const i64 = {
  clz: plainUnary(0x79),
  shl: plain(0x86),
  shrS: plain(0x87),
  shrU: plain(0x88),
  extendI32U: plainUnary(0xad),
};

/** What a subroutine gives for vectors. */
export function call(subroutine: Subroutine, ...parameters: Expression[]): Expression {
  return (body) => {
    for (const parameter of parameters) parameter(body);
    const index = body.subroutineIndex(subroutine);
    body.code.byte(0x10);
    body.code.unsigned(index);
  };
}

const evenWords = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
const oddWords = evenWords.map((byte) => byte + 4);

/** The low words of the four 64-bit lanes of {a, b}. */
export function lowWords(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, evenWords);
}

/** The high words of the four 64-bit lanes of {a, b}. */
export function highWords(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, oddWords);
}

const halves = { low: [0, 1, 2, 3, 4, 5, 6, 7], high: [8, 9, 10, 11, 12, 13, 14, 15] } as const;

/** The high 64 bits, then the low ones. */
export function swapHalves(a: Expression): Expression {
  return i8x16.shuffle(a, a, [...halves.high, ...halves.low]);
}

/** The low 64 bits of a, then those of b. */
export function joinLow(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [...halves.low, ...halves.low.map((byte) => byte + 16)]);
}

/** The high 64 bits of a, then those of b. */
export function joinHigh(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [...halves.high, ...halves.high.map((byte) => byte + 16)]);
}

/** The words of a and b by turns: those of the low halves. */
export function interleaveLow(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23]);
}

/** The words of a and b by turns: those of the high halves. */
export function interleaveHigh(a: Expression, b: Expression): Expression {
  return i8x16.shuffle(a, b, [8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31]);
}
