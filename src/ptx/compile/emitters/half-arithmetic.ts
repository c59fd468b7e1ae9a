import type { Expression, FunctionBody, Subroutine } from '../webassembly/function-body.js';
import { call, f32x4, f64x2, i32x4, lowWords, v128 } from '../webassembly/vectors.js';
import { shortened } from './conversion.js';
import { rounded } from './directed-rounding.js';
import { type Emitter, onWords, type VectorFunction } from './emitter.js';
import { truncatedToFloat16, widenedFloat16 } from './float16.js';
import { chosen, extremumRules, type ExtremumRule } from './float32.js';
import { eachHalf, type Halves, promoted, sumToOdd } from './fused-multiply-add.js';
import { exp2Ftz, tanh } from './mufu/special-functions.js';

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

/** A format of 16 bits: its numbers as fp32, and fp32 rounded to nearest even to the format. */
interface HalfFormat {
  readonly name: 'f16' | 'bf16';
  readonly widened: (body: FunctionBody, a: Expression) => Expression;
  readonly shortened: (body: FunctionBody, a: Expression) => Expression;
  readonly infinity: number;
}

const formats: readonly HalfFormat[] = [
  {
    name: 'f16',
    widened: (body, a) => body.keep(widenedFloat16(body, a)),
    shortened: (body, a) => shortened(body, 'cvt.rn.f16x2.f32', body.keep(a)),
    infinity: 0x7c00,
  },
  {
    name: 'bf16',
    widened: (body, a) => body.keep(i32x4.shl(a, 16)),
    shortened: (body, a) => shortened(body, 'cvt.rn.bf16x2.f32', body.keep(a)),
    infinity: 0x7f80,
  },
];

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

const extrema: readonly Emitter[] = formats.flatMap((format) =>
  Object.entries(extremumRules).flatMap(([opcode, extremum]) =>
    [false, true].flatMap((keepsNan) => {
      const rule: ExtremumRule = { extremum, keepsNan };
      const name = `${opcode}${keepsNan ? '.NaN' : ''}.${format.name}`;
      return singleAndPair(name, 2, (body, a, b) =>
        format.shortened(
          body,
          chosen(body, rule, format.widened(body, a), format.widened(body, b)),
        ),
      );
    }),
  ),
);

/** The special function unit's functions of 16-bit numbers: those of fp32, with the result truncated. */
const functions: readonly Emitter[] = [
  { opcode: 'ex2.approx', bf16: '.ftz.bf16', subroutine: exp2Ftz },
  { opcode: 'tanh.approx', bf16: '.bf16', subroutine: tanh },
].flatMap(({ opcode, bf16, subroutine }) => [
  ...singleAndPair(opcode + bf16, 1, (_, a) => i32x4.shrU(call(subroutine, i32x4.shl(a, 16)), 16)),
  ...singleAndPair(`${opcode}.f16`, 1, (body, a) => {
    const result = call(subroutine, body.keep(widenedFloat16(body, a)));
    return truncatedToFloat16(body, body.keep(result));
  }),
]);

/** Arithmetic of fp16 and bf16, single and in pairs: rounded once to nearest even, subnormals kept. */
export const halfEmitters: readonly Emitter[] = [...arithmetic, ...signs, ...extrema, ...functions];
