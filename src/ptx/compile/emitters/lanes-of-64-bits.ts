import {
  type Expression,
  f32,
  f32x4,
  f64,
  f64x2,
  i32x4,
  i64,
  i64x2,
  v128,
} from '../../../isa/webassembly/index.js';
import { bothLanes } from '../../../isa/vectors/index.js';
import type { Emitter } from './emitter.js';

// Operations that WebAssembly has for one number of 64 bits but not for a vector: each lane is extracted and replaced.

const zero = i32x4.splat(0);
const highestBit = i64x2.splat(1n << 63n);

const fromIntegers: readonly Emitter[] = [
  { type: 's64', toFloat64: f64.convertI64S, toFloat32: f32.convertI64S },
  { type: 'u64', toFloat64: f64.convertI64U, toFloat32: f32.convertI64U },
].flatMap(({ type, toFloat64, toFloat32 }): Emitter[] => [
  {
    name: `cvt.rn.f64.${type}`,
    sources: 1,
    emit: (_, { vectors }) => [
      vectors.map((vector) =>
        [0, 1].reduce<Expression>(
          (result, lane) =>
            f64x2.replaceLane(result, lane, toFloat64(i64x2.extractLane(vector, lane))),
          zero,
        ),
      ),
    ],
  },
  {
    name: `cvt.rn.f32.${type}`,
    sources: 1,
    emit: (_, { vectors }) => [
      [
        [0, 1, 2, 3].reduce<Expression>(
          (result, lane) =>
            f32x4.replaceLane(
              result,
              lane,
              toFloat32(i64x2.extractLane(vectors[lane >> 1], lane & 1)),
            ),
          zero,
        ),
      ],
    ],
  },
]);

/** Roundings to an integral number. */
const roundings = [
  { mode: 'rni', ofFloat64: f64x2.nearest, ofFloat32: f32x4.nearest },
  { mode: 'rzi', ofFloat64: f64x2.trunc, ofFloat32: f32x4.trunc },
  { mode: 'rmi', ofFloat64: f64x2.floor, ofFloat32: f32x4.floor },
  { mode: 'rpi', ofFloat64: f64x2.ceil, ofFloat32: f32x4.ceil },
] as const;

/** The integers, with the highest bit set in lanes of NaN. */
function withNan(integers: Expression, isNan: Expression): Expression {
  return v128.or(integers, v128.and(isNan, highestBit));
}

const toIntegers: readonly Emitter[] = roundings.flatMap(({ mode, ofFloat64, ofFloat32 }) =>
  [
    { type: 's64', ofDouble: i64.truncSatF64S, ofSingle: i64.truncSatF32S },
    { type: 'u64', ofDouble: i64.truncSatF64U, ofSingle: i64.truncSatF32U },
  ].flatMap(({ type, ofDouble, ofSingle }): Emitter[] => [
    {
      name: `cvt.${mode}.${type}.f64`,
      sources: 1,
      emit: (body, { vectors }) => [
        vectors.map((vector) => {
          const rounded = body.keep(ofFloat64(vector));
          const integers = bothLanes((lane) => ofDouble(f64x2.extractLane(rounded, lane)));
          return withNan(integers, f64x2.ne(vector, vector));
        }),
      ],
    },
    {
      name: `cvt.${mode}.${type}.f32`,
      sources: 1,
      emit: (body, { vectors: [a] }) => {
        const rounded = body.keep(ofFloat32(a));
        const isNan = body.keep(f32x4.ne(a, a));
        const masks = [i64x2.extendLowI32x4S(isNan), i64x2.extendHighI32x4S(isNan)];
        return [
          masks.map((mask, i) =>
            withNan(
              bothLanes((lane) => ofSingle(f32x4.extractLane(rounded, 2 * i + lane))),
              mask,
            ),
          ),
        ];
      },
    },
  ]),
);

/** Conversions between 64-bit integers and numbers. */
export const wideLaneEmitters: readonly Emitter[] = [...fromIntegers, ...toIntegers];
