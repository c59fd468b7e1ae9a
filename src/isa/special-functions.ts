import { rcpApproxFtzFloat64, rsqrtApproxFtzFloat64, specialFunctions } from '../hardware/index.js';
import type { LaneValue } from './instruction.js';
import { pairsOf } from './pairs.js';
import { type Row, row } from './row.js';
import {
  cosine,
  type Emit,
  exp2,
  exp2Ftz,
  log2,
  onWords,
  reciprocal,
  reciprocalSquareRoot,
  sine,
  squareRoot,
  tanh,
  truncatedToFloat16,
  unflushed,
  widenedFloat16,
} from './vectors/index.js';
import { call, i32x4, type Subroutine } from './webassembly/index.js';

const common = {
  section: 'Floating Point Instructions',
  meaning: 'is',
  unit: 'mufu',
  evidence: 'silicon',
} as const;

/** The opcodes of functions of fp32 that may flush subnormals. */
type FlushingOpcode = 'ex2' | 'rcp' | 'lg2' | 'rsqrt' | 'sqrt' | 'sin' | 'cos';

/**
 * A function of fp32.
 *
 * @param keeping the subroutine that keeps subnormals
 * @param flushing that with `.ftz`
 */
function ofFloat32(opcode: FlushingOpcode, keeping: Subroutine, flushing: Subroutine): Row {
  const nameOf = (ftz: string) => `${opcode}.approx${ftz === '' ? '' : '.ftz'}.f32` as const;
  return row({
    ...common,
    syntax: `${opcode}.approx{.ftz}.f32 d, a`,
    evaluate: ({ ftz }) => specialFunctions[nameOf(ftz)].evaluate,
    emit: ({ ftz }) => onWords((_, a) => call(ftz === '' ? keeping : flushing, a)),
    isOfMachine: true,
  });
}

/** A function of fp32 as one of bf16, by truncation. */
function ofBf16(subroutine: Subroutine): Emit {
  return onWords((_, a) => i32x4.shrU(call(subroutine, i32x4.shl(a, 16)), 16));
}

/** A function of fp32 as one of fp16, by truncation. */
function ofFloat16(subroutine: Subroutine): Emit {
  return onWords((body, a) => {
    const result = call(subroutine, body.keep(widenedFloat16(body, a)));
    return truncatedToFloat16(body, body.keep(result));
  });
}

type HalfFunctionName =
  'ex2.approx.ftz.bf16' | 'ex2.approx.f16' | 'tanh.approx.bf16' | 'tanh.approx.f16';

/** A function of 16 bits, and of pairs of them. */
function ofHalves(name: HalfFunctionName, code: Emit): Row[] {
  const single = row({
    ...common,
    syntax: `${name} d, a`,
    evaluate: () => (half: number) => specialFunctions[name].evaluate(half & 0xffff),
    emit: () => code,
    isOfMachine: true,
    section: 'Half Precision Floating Point Instructions',
  });
  return [single, pairsOf(single, { syntax: `${name}x2 d, a`, evidence: 'silicon' })];
}

/** A function of the high word; the low word counts as zeros, and is zero in the result. */
function ofHighWords(opcode: 'rcp' | 'rsqrt', evaluate: (high: number) => number): Row {
  return row({
    ...common,
    syntax: `${opcode}.approx.ftz.f64 d, a`,
    evaluate: () => (value: LaneValue) => BigInt(evaluate(Number(BigInt(value) >> 32n))) << 32n,
  });
}

/**
 * The instructions of the special function unit that src/hardware models, bit for bit those of an
 * H200. ptxas surrounds `ex2.approx.f32`, without ftz, with two more instructions for subnormal
 * results; here it is PTX's single instruction. Those of fp64 are the approximations on high words from which compilers
 * make divisions and roots.
 */
export const specialFunctionRows: readonly Row[] = [
  ofFloat32('ex2', exp2, exp2Ftz),
  ofFloat32('rcp', unflushed.rcp, reciprocal),
  ofFloat32('lg2', unflushed.lg2, log2),
  ofFloat32('rsqrt', unflushed.rsqrt, reciprocalSquareRoot),
  row({
    ...common,
    syntax: 'tanh.approx.f32 d, a',
    evaluate: () => specialFunctions['tanh.approx.f32'].evaluate,
    emit: () => onWords((_, a) => call(tanh, a)),
    isOfMachine: true,
  }),
  ofFloat32('sqrt', unflushed.sqrt, squareRoot),
  ofFloat32('sin', sine, sine),
  ofFloat32('cos', cosine, cosine),
  ...ofHalves('ex2.approx.ftz.bf16', ofBf16(exp2Ftz)),
  ...ofHalves('ex2.approx.f16', ofFloat16(exp2Ftz)),
  ...ofHalves('tanh.approx.bf16', ofBf16(tanh)),
  ...ofHalves('tanh.approx.f16', ofFloat16(tanh)),
  ofHighWords('rcp', rcpApproxFtzFloat64),
  ofHighWords('rsqrt', rsqrtApproxFtzFloat64),
];
