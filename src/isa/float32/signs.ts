import { bitsOfFloat32, float32Of } from '../../arith/index.js';
import { type Row, row } from '../row.js';
import { flushed, floatTypes, laneValue, signBit } from '../values/float-type.js';
import {
  canonical,
  type Emit,
  flushed as flushedCode,
  magnitude,
  onEachVector,
  onWords,
} from '../vectors/index.js';
import { type Expression, i32x4, i64x2, v128 } from '../webassembly/index.js';

const signBits = { f32: i32x4.splat(0x80000000), f64: i64x2.splat(1n << 63n) } as const;

function evaluated(ftz: string, compute: (value: number) => number) {
  return (a: number): number => {
    const value = float32Of(a);
    return bitsOfFloat32(compute(ftz === '' ? value : flushed(floatTypes.f32, value)));
  };
}

function emitted(ftz: string, compute: (a: Expression) => Expression): Emit {
  return onWords((body, a) =>
    canonical(body.keep(compute(ftz === '' ? a : body.keep(flushedCode(a))))),
  );
}

const common = {
  isOfMachine: true,
  meaning: 'is',
  unit: 'fma',
  evidence: 'silicon',
} as const;

/**
 * Signs of fp32. `neg` and `abs` are additions in the hardware, so that a NaN becomes 0x7fffffff and `.ftz` flushes
 * subnormals; `copysign`, also of fp64, only moves a bit.
 */
export const float32Signs: readonly Row[] = [
  row({
    ...common,
    syntax: 'neg{.ftz}.f32 d, a',
    evaluate: ({ ftz }) => evaluated(ftz, (value) => -value),
    emit: ({ ftz }) => emitted(ftz, (a) => v128.xor(a, signBits.f32)),
    section: 'Floating Point Instructions',
  }),
  row({
    ...common,
    syntax: 'abs{.ftz}.f32 d, a',
    evaluate: ({ ftz }) => evaluated(ftz, Math.abs),
    emit: ({ ftz }) => emitted(ftz, magnitude),
    section: 'Floating Point Instructions',
  }),
  row({
    syntax: 'copysign.type d, a, b',
    alternatives: { type: ['.f32', '.f64'] },
    evaluate: ({ type }) => {
      const float = floatTypes[type as 'f32' | 'f64'];
      const sign = signBit(float);
      return (a, b) => laneValue(float.width, (BigInt(a) & sign) | (BigInt(b) & (sign - 1n)));
    },
    emit: ({ type }) =>
      onEachVector((_, a, b) => v128.bitselect(a, b, signBits[type as 'f32' | 'f64'])),
    meaning: 'is',
    unit: 'alu',
    evidence: 'silicon',
    section: 'Floating Point Instructions',
  }),
];
