import {
  call,
  type Expression,
  f32x4,
  type FunctionBody,
  i32x4,
  type Subroutine,
  v128,
} from '../../webassembly/index.js';
import { canonical, magnitude } from '../float32.js';
import { log2, reciprocal, reciprocalSquareRoot, squareRoot } from './special-functions.js';

/**
 * The use of the unit, by an instruction without `.ftz`, for some operands: the factors for them and for the results.
 */
interface Scaling {
  readonly subroutine: Subroutine;
  readonly isScaled: (size: Expression) => Expression;
  readonly factor: number;
  readonly restore: (result: Expression) => Expression;
}

const isSubnormal = (size: Expression): Expression =>
  v128.andnot(i32x4.ltS(size, i32x4.splat(0x00800000)), i32x4.eq(size, i32x4.splat(0)));

const bitsOf = (value: number): Expression =>
  i32x4.splat(new Int32Array(Float32Array.of(value).buffer)[0]);

function scaledBy(factor: number): (result: Expression) => Expression {
  return (result) => f32x4.mul(result, bitsOf(factor));
}

/** The subroutine, with the operands scaled for which `isScaled` holds; `bits` is written several times. */
function scaled(
  body: FunctionBody,
  { subroutine, isScaled, factor, restore }: Scaling,
  bits: Expression,
): Expression {
  const selected = body.keep(isScaled(body.keep(magnitude(bits))));
  const operand = v128.bitselect(f32x4.mul(bits, bitsOf(factor)), bits, selected);
  const result = body.keep(call(subroutine, operand));
  return v128.bitselect(restore(result), result, selected);
}

const two24 = 2 ** 24;

const reciprocalSubnormal: Subroutine = {
  name: 'rcp.approx.f32 below 2^126',
  parameters: 1,
  build: (body, bits) =>
    scaled(
      body,
      {
        subroutine: reciprocal,
        isScaled: isSubnormal,
        factor: two24,
        restore: scaledBy(two24),
      },
      bits,
    ),
};

function keeping(name: string, scaling: Scaling): Subroutine {
  return { name, parameters: 1, build: (body, bits) => scaled(body, scaling, bits) };
}

/**
 * The functions that keep subnormal numbers, which the unit does not: operands are scaled before it and results after
 * it.
 */
export const unflushed = {
  rcp: keeping('rcp.approx.f32', {
    subroutine: reciprocalSubnormal,
    isScaled: (size) =>
      v128.and(i32x4.gtS(size, i32x4.splat(0x7e800000)), i32x4.ltS(size, i32x4.splat(0x7f800000))),
    factor: 2 ** -2,
    restore: scaledBy(2 ** -2),
  }),
  rsqrt: keeping('rsqrt.approx.f32', {
    subroutine: reciprocalSquareRoot,
    isScaled: isSubnormal,
    factor: two24,
    restore: (result) => canonical(f32x4.mul(result, bitsOf(2 ** 12))),
  }),
  sqrt: keeping('sqrt.approx.f32', {
    subroutine: squareRoot,
    isScaled: isSubnormal,
    factor: two24,
    restore: (result) => canonical(f32x4.mul(result, bitsOf(2 ** -12))),
  }),
  lg2: keeping('lg2.approx.f32', {
    subroutine: log2,
    isScaled: isSubnormal,
    factor: two24,
    restore: (result) => canonical(f32x4.sub(result, bitsOf(24))),
  }),
} as const satisfies Readonly<Record<string, Subroutine>>;
