import type { Expression, FunctionBody } from '../webassembly/function-body.js';
import { f32x4, i32x4, v128 } from '../webassembly/vectors.js';
import { type Emitter, onWords } from './emitter.js';
import { fusedMultiplyAdd } from './fused-multiply-add.js';

// fp32 arithmetic to nearest even is WebAssembly's, except for NaNs, which are 0x7fffffff here, and for .ftz.

const nan = i32x4.splat(0x7fffffff);
const signBit = i32x4.splat(0x80000000);
const magnitudeMask = i32x4.splat(0x7fffffff);

/** The vector with 0x7fffffff for every NaN; it is written twice. */
export function canonical(a: Expression): Expression {
  return v128.bitselect(nan, a, f32x4.ne(a, a));
}

/** The bits without the sign. */
export function magnitude(a: Expression): Expression {
  return v128.and(a, magnitudeMask);
}

/** Subnormal numbers as zeros of their sign; `a` is written several times. */
export function flushed(a: Expression): Expression {
  // A number less than 2^-126 in magnitude keeps only its sign.
  return v128.andnot(a, v128.and(i32x4.ltS(magnitude(a), i32x4.splat(0x00800000)), magnitudeMask));
}

type Arithmetic = (a: Expression, b: Expression) => Expression;

/**
 * `result` as `.ftz` flushes it: to zero if it is below 2^-126 after rounding to 24 bits with unlimited exponents.
 * Twice the exact result, rounded, has these bits: `doubled` gives it.
 */
export function flushedResult(result: Expression, doubled: Expression): Expression {
  const isTiny = i32x4.ltS(magnitude(doubled), i32x4.splat(0x01000000));
  return v128.andnot(result, v128.and(isTiny, magnitudeMask));
}

const operations: readonly { readonly opcode: string; readonly compute: Arithmetic }[] = [
  { opcode: 'add', compute: f32x4.add },
  { opcode: 'sub', compute: f32x4.sub },
];

/** The modifiers of rounding to nearest even, which PTX also uses without a modifier. */
const toNearest = ['', '.rn'];

/** An emitter, and the emitter of its packed form: the same for the words of a pair of registers. */
export function withPacked(emitter: Emitter): readonly Emitter[] {
  return [
    emitter,
    {
      name: `${emitter.name}x2`,
      sources: emitter.sources,
      emit: (body, ...sources) => [
        [0, 1].map((vector) => {
          const [[result]] = emitter.emit(
            body,
            ...sources.map(({ vectors }) => ({ vectors: [vectors[vector]], constant: null })),
          );
          return result;
        }),
      ],
    },
  ];
}

const sums: readonly Emitter[] = operations.flatMap(({ opcode, compute }) =>
  toNearest.flatMap((rounding): Emitter[] => [
    onWords(`${opcode}${rounding}.f32`, 2, (body, a, b) => canonical(body.keep(compute(a, b)))),
    // A subnormal sum is exact, so that none is rounded up to 2^-126.
    onWords(`${opcode}${rounding}.ftz.f32`, 2, (body, a, b) =>
      canonical(
        body.keep(flushed(body.keep(compute(body.keep(flushed(a)), body.keep(flushed(b)))))),
      ),
    ),
  ]),
);

/** The product of fp32 numbers with `.ftz`; NaN is 0x7fffffff. */
export function flushingProduct(body: FunctionBody, a: Expression, b: Expression): Expression {
  const [x, y] = [body.keep(flushed(a)), body.keep(flushed(b))];
  const product = flushedResult(f32x4.mul(x, y), f32x4.mul(f32x4.add(x, x), y));
  return canonical(body.keep(product));
}

const products: readonly Emitter[] = toNearest.flatMap((rounding): Emitter[] => [
  onWords(`mul${rounding}.f32`, 2, (body, a, b) => canonical(body.keep(f32x4.mul(a, b)))),
  onWords(`mul${rounding}.ftz.f32`, 2, flushingProduct),
]);

const fusedMultiplyAdds: readonly Emitter[] = [
  onWords('fma.rn.f32', 3, (body, a, b, c) => canonical(fusedMultiplyAdd(body, [a, b, c], false))),
  onWords('fma.rn.ftz.f32', 3, (body, a, b, c) => {
    const [x, y, z] = [a, b, c].map((operand) => body.keep(flushed(operand)));
    return canonical(fusedMultiplyAdd(body, [x, y, z], true));
  }),
];

/**
 * An extremum of numbers, from both orders of its operands: for zeros of different signs each order gives its first
 * operand, and their joined signs are the right one.
 */
export type Extremum = (a: Expression, b: Expression) => Expression;

const isNan = (a: Expression): Expression => f32x4.ne(a, a);

/** The rule for choosing one of two numbers. */
export interface ExtremumRule {
  readonly extremum: Extremum;
  readonly keepsNan: boolean;
}

/** Rules of the extrema, by opcode. */
export const extremumRules: Readonly<Record<'min' | 'max', Extremum>> = {
  min: (a, b) => v128.or(f32x4.pmin(a, b), f32x4.pmin(b, a)),
  max: (a, b) => v128.and(f32x4.pmax(a, b), f32x4.pmax(b, a)),
};

/**
 * The extremum where a NaN loses against a number, or wins; each of the inner selections waits for one comparison only.
 */
export function chosen(
  body: FunctionBody,
  { extremum, keepsNan }: ExtremumRule,
  a: Expression,
  b: Expression,
): Expression {
  const [isFirst, isSecond] = [body.keep(isNan(a)), body.keep(isNan(b))];
  const ofNumbers = extremum(a, b);
  if (keepsNan) return body.keep(v128.bitselect(nan, ofNumbers, v128.or(isFirst, isSecond)));
  return body.keep(
    v128.bitselect(
      v128.bitselect(nan, a, isFirst),
      v128.bitselect(b, ofNumbers, isFirst),
      isSecond,
    ),
  );
}

const extrema: readonly Emitter[] = Object.entries(extremumRules).flatMap(([opcode, extremum]) =>
  [false, true].flatMap((flushes) =>
    [false, true].flatMap((keepsNan): Emitter[] => {
      const prepare = (body: FunctionBody, a: Expression): Expression =>
        flushes ? body.keep(flushed(a)) : a;
      const rule = { extremum, keepsNan };
      const name = `${opcode}${flushes ? '.ftz' : ''}${keepsNan ? '.NaN' : ''}.f32`;
      return [
        onWords(name, 2, (body, a, b) => chosen(body, rule, prepare(body, a), prepare(body, b))),
        onWords(name, 3, (body, a, b, c) => {
          const first = chosen(body, rule, prepare(body, a), prepare(body, b));
          return chosen(body, rule, first, prepare(body, c));
        }),
      ];
    }),
  ),
);

const signs: readonly Emitter[] = [
  { opcode: 'neg', compute: (a: Expression) => v128.xor(a, signBit) },
  { opcode: 'abs', compute: magnitude },
].flatMap(({ opcode, compute }): Emitter[] => [
  onWords(`${opcode}.f32`, 1, (body, a) => canonical(body.keep(compute(a)))),
  onWords(`${opcode}.ftz.f32`, 1, (body, a) =>
    canonical(body.keep(compute(body.keep(flushed(a))))),
  ),
]);

/** `.sat`: cut to [0, 1]; NaN and −0 give +0. */
export function saturated(body: FunctionBody, a: Expression): Expression {
  const kept = body.keep(a);
  // Positive numbers ascend as their patterns do.
  const isPositive = v128.and(
    i32x4.gtS(kept, i32x4.splat(0)),
    i32x4.leS(kept, i32x4.splat(0x7f800000)),
  );
  return v128.and(i32x4.minS(kept, i32x4.splat(0x3f800000)), isPositive);
}

/** The same operations with `.sat`. */
const limited: readonly Emitter[] = [...sums, ...products, ...fusedMultiplyAdds].map(
  ({ name, sources, emit }): Emitter => ({
    name: name.replace(/\.f32$/, '.sat.f32'),
    sources,
    emit: (body, ...values) => [[saturated(body, emit(body, ...values)[0][0])]],
  }),
);

/** `mad` of fp32 is `fma`. */
const multiplyAdds: readonly Emitter[] = [...fusedMultiplyAdds, ...limited]
  .filter(({ name }) => name.startsWith('fma.'))
  .map((emitter) => ({ ...emitter, name: emitter.name.replace('fma', 'mad') }));

/** fp32 arithmetic. NaN results are 0x7fffffff. */
export const float32Emitters: readonly Emitter[] = [
  ...[...sums, ...products, ...fusedMultiplyAdds].flatMap(withPacked),
  ...limited,
  ...multiplyAdds,
  ...extrema,
  ...signs,
  onWords('copysign.f32', 2, (_, a, b) => v128.bitselect(a, b, signBit)),
];
