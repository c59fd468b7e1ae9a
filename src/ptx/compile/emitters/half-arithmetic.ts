import {
  call,
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  i32x4,
  lowWords,
  type Subroutine,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onWords, type VectorFunction } from './emitter.js';
import {
  eachHalf,
  halfFormats,
  type Halves,
  promoted,
  rounded,
  sumToOdd,
} from '../../../isa/vectors/index.js';

const formats = Object.values(halfFormats);

/** An emitter of 16-bit numbers, and one of pairs of them. */
function singleAndPair(name: string, sources: number, compute: VectorFunction): readonly Emitter[] {
  const low = (a: Expression): Expression => v128.and(a, i32x4.splat(0xffff));
  const high = (a: Expression): Expression => i32x4.shrU(a, 16);
  return [
    onWords(name, sources, compute),
    onWords(`${name}x2`, sources, (body, ...operands) => {
      const half = (part: (a: Expression) => Expression): Expression => {
        const [a, b, c, d] = operands.map((operand, i) =>
          i < sources ? body.keep(part(operand)) : operand,
        );
        return body.keep(compute(body, a, b, c, d));
      };
      return v128.or(i32x4.shl(half(high), 16), half(low));
    }),
  ];
}

/** fp64 numbers rounded to odd fp32: a further rounding to a shorter format then gives the correctly rounded number. */
function roundedToOdd(body: FunctionBody, values: Halves): Expression {
  const truncated = rounded(body, values, 'toward-zero');
  const back = promoted(truncated);
  // NaN differs from itself; one more low bit leaves it NaN.
  const isInexact = lowWords(f64x2.ne(back.low, values.low), f64x2.ne(back.high, values.high));
  return v128.or(truncated, v128.and(isInexact, i32x4.splat(1)));
}

/** a·b + c of numbers of a half format that are given as fp32, rounded to odd fp32. */
const fusedToOdd: Subroutine = {
  name: 'fma of halves',
  parameters: 3,
  build: (body, a, b, c) => {
    const [x, y, z] = [a, b, c].map(promoted);
    const sums = eachHalf((half) =>
      sumToOdd(body, body.keep(f64x2.mul(x[half], y[half])), body.keep(z[half])),
    );
    return roundedToOdd(body, sums);
  },
};

const productToOdd: Subroutine = {
  name: 'mul of halves',
  parameters: 2,
  build: (body, a, b) => {
    const [x, y] = [promoted(a), promoted(b)];
    return roundedToOdd(
      body,
      eachHalf((half) => body.keep(f64x2.mul(x[half], y[half]))),
    );
  },
};

/** Limits on a result of 16 bits, whose NaN is 0x7fff. */
const limits: Readonly<Record<string, (body: FunctionBody, a: Expression) => Expression>> = {
  '': (_, a) => a,
  '.relu': (body, a) => {
    const result = body.keep(a);
    return v128.and(result, i32x4.leS(result, i32x4.splat(0x7fff)));
  },
};

/**
 * Operations on halves: their fp32 sums, rounded once more, are as if rounded once, since fp32 has more than twice the
 * bits plus two.
 */
const operations: readonly {
  readonly opcode: string;
  readonly sources: 2 | 3;
  readonly compute: (a: Expression, b: Expression, c: Expression) => Expression;
}[] = [
  { opcode: 'add', sources: 2, compute: (a, b) => f32x4.add(a, b) },
  { opcode: 'sub', sources: 2, compute: (a, b) => f32x4.sub(a, b) },
  { opcode: 'mul', sources: 2, compute: (a, b) => call(productToOdd, a, b) },
  { opcode: 'fma', sources: 3, compute: (a, b, c) => call(fusedToOdd, a, b, c) },
];

const arithmetic: readonly Emitter[] = formats.flatMap((format) =>
  operations.flatMap(({ opcode, sources, compute }) =>
    (opcode === 'fma' ? ['.rn', '.rn.relu'] : ['', '.rn']).flatMap((modifiers) =>
      singleAndPair(`${opcode}${modifiers}.${format.name}`, sources, (body, a, b, c) => {
        const [x, y, z] = [a, b, c].map((operand, i) =>
          i < sources ? format.widened(body, operand) : operand,
        );
        const result = format.shortened(body, compute(x, y, z));
        return limits[modifiers.endsWith('.relu') ? '.relu' : ''](body, result);
      }),
    ),
  ),
);

const signs: readonly Emitter[] = formats.flatMap(({ name, infinity }) =>
  [
    { opcode: 'neg', mask: i32x4.splat(0xffff), flip: i32x4.splat(0x8000) },
    { opcode: 'abs', mask: i32x4.splat(0x7fff), flip: i32x4.splat(0) },
  ].flatMap(({ opcode, mask, flip }) =>
    singleAndPair(`${opcode}.${name}`, 1, (_, a) => {
      const isNan = i32x4.gtS(v128.and(a, i32x4.splat(0x7fff)), i32x4.splat(infinity));
      return v128.bitselect(i32x4.splat(0x7fff), v128.and(v128.xor(a, flip), mask), isNan);
    }),
  ),
);

/** Arithmetic of fp16 and bf16, single and in pairs: rounded once to nearest even, subnormals kept. */
export const halfEmitters: readonly Emitter[] = [...arithmetic, ...signs];
