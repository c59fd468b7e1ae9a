import {
  conversions,
  type ConversionName,
  type PairConversionName,
} from '../../../hardware/index.js';
import {
  type Expression,
  f32x4,
  type FunctionBody,
  i32x4,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onWords } from './emitter.js';
import {
  canonical,
  flushed,
  magnitude,
  saturated,
  shortened,
  widenedFloat16,
  signed16,
} from '../../../isa/vectors/index.js';

const infinity = i32x4.splat(0x7f800000);

const pairNames = (Object.keys(conversions) as ConversionName[]).filter(
  (name): name is PairConversionName => name.endsWith('x2.f32') && name !== 'cvt.rn.bf16x2.f32',
);

/** fp32 rounded to nearest even at bit 16: the upper half is bf16, the lower half is meaningless. */
function roundedToBf16(body: FunctionBody, a: Expression): Expression {
  const lowest = v128.and(i32x4.shrU(a, 16), i32x4.splat(1));
  const rounded = i32x4.add(i32x4.add(a, i32x4.splat(0x7fff)), lowest);
  return body.keep(v128.bitselect(i32x4.splat(0x7fff0000), rounded, f32x4.ne(a, a)));
}

/** Conversions to bf16, which has the exponents of fp32, so that rounding is an addition. */
const toBf16: readonly Emitter[] = [
  onWords('cvt.rn.bf16x2.f32', 2, (body, a, b) => {
    const high = v128.and(roundedToBf16(body, a), i32x4.splat(0xffff0000));
    return v128.or(high, i32x4.shrU(roundedToBf16(body, b), 16));
  }),
  onWords('cvt.rn.bf16.f32', 1, (body, a) => i32x4.shrU(roundedToBf16(body, a), 16)),
];

/** `d = {a, b}`, a in the high half; and the conversions of one operand. */
const toShorter: readonly Emitter[] = pairNames.flatMap((name): Emitter[] => {
  const bits = /bf16|f16/.test(name) ? 16 : 8;
  const pair = onWords(name, 2, (body, a, b) => {
    const high = shortened(body, name, a);
    return v128.or(i32x4.shl(high, bits), shortened(body, name, b));
  });
  if (bits === 8) return [pair];
  return [pair, onWords(name.replace('x2.', '.'), 1, (body, a) => shortened(body, name, a))];
});

const toFloat32: readonly Emitter[] = [
  onWords('cvt.f32.f16', 1, (body, a) => widenedFloat16(body, a)),
  onWords('cvt.f32.bf16', 1, (_, a) => i32x4.shl(a, 16)),
];

/** Roundings to an integer. */
const toIntegral: Readonly<Record<string, (a: Expression) => Expression>> = {
  '.rni': f32x4.nearest,
  '.rzi': f32x4.trunc,
  '.rmi': f32x4.floor,
  '.rpi': f32x4.ceil,
};

const toIntegers: readonly Emitter[] = Object.entries(toIntegral).flatMap(([rounding, round]) =>
  ['', '.ftz'].flatMap((ftz): Emitter[] => {
    const rounded = (body: FunctionBody, a: Expression): Expression =>
      round(ftz === '' ? a : body.keep(flushed(a)));
    return [
      // With `.sat` or without.
      ...['', '.sat'].flatMap((sat): Emitter[] => [
        {
          ...onWords(`cvt${rounding}${ftz}${sat}.s32.f32`, 1, (body, a) =>
            i32x4.truncSatF32x4S(rounded(body, a)),
          ),
          destinations: [32],
        },
        onWords(`cvt${rounding}${ftz}${sat}.u32.f32`, 1, (body, a) =>
          i32x4.truncSatF32x4U(rounded(body, a)),
        ),
      ]),
      onWords(`cvt${rounding}${ftz}.f32.f32`, 1, (body, a) =>
        canonical(body.keep(rounded(body, a))),
      ),
    ];
  }),
);

const fromIntegers: readonly Emitter[] = [
  onWords('cvt.rn.f32.s32', 1, (_, a) => f32x4.convertI32x4S(a)),
  onWords('cvt.rn.f32.u32', 1, (_, a) => f32x4.convertI32x4U(a)),
  onWords('cvt.rn.f32.s16', 1, (_, a) => f32x4.convertI32x4S(signed16(a))),
  onWords('cvt.rn.f32.u16', 1, (_, a) => f32x4.convertI32x4S(a)),
];

/** Conversion to tf32, ties away from zero: half a unit is added to finite numbers, and the low bits are cut. */
const toTf32 = onWords('cvt.rna.tf32.f32', 1, (_, a) => {
  const half = v128.and(i32x4.ltS(magnitude(a), infinity), i32x4.splat(0x1000));
  return v128.and(i32x4.add(a, half), i32x4.splat(0xffffe000));
});

/** Conversions between formats of numbers. */
export const conversionEmitters: readonly Emitter[] = [
  ...toBf16,
  ...toShorter,
  ...toFloat32,
  ...toIntegers,
  ...fromIntegers,
  toTf32,
  onWords('cvt.sat.f32.f32', 1, (body, a) => saturated(body, canonical(a))),
  onWords('cvt.ftz.f32.f32', 1, (body, a) => canonical(body.keep(flushed(a)))),
];
