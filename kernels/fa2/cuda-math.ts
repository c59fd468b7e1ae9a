import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { exp2Hardware, log2Hardware, naturalLogOf2 } from '../online-softmax/units.js';

const log2OfE = 1.4426950216293335;
const log2OfERest = 1.925963033500011e-8;
const smallestNormal = 2 ** -126;

/** Exponential and natural logarithm of fp32 numbers, as a compiler implements them. */
export interface CudaMath {
  readonly exp: (x: number) => number;
  /** ln x + addend: the logarithm and the sum rounded, or the logarithm's last product fused with the sum. */
  readonly logPlus: (x: number, addend: number) => number;
}

/**
 * expf of CUDA's libdevice: x·log2 e = n + t in two multiply-adds, the special function unit's 2^t, times
 * 2^n. The integer n is rounded to nearest and, for results beyond the range, clamped to −126…127.
 */
function libdeviceExp(x: number): number {
  if (Number.isNaN(x)) return NaN;
  const magic = 12582913;
  const fraction = fusedMultiplyAddFloat32(x, 0.00572498003, 0.5);
  const saturated = Math.min(Math.max(fraction, 0), 1);
  // fma.rm of a number in [0, 1] with 252 and a constant whose unit is 1: towards −∞.
  const n = Math.floor(saturated * 252 + magic) - (magic + 126);
  const t = fusedMultiplyAddFloat32(x, log2OfERest, fusedMultiplyAddFloat32(x, log2OfE, -n));
  return multiplyFloat32(exp2Hardware(t), 2 ** n);
}

/** Coefficients of logf's polynomial in m − 1, from the highest on. */
const logCoefficients = [
  0xbe055027, 0x3e1039f6, 0xbdf8cdcc, 0x3e0f2955, 0xbe2ad8b9, 0x3e4ced0b, 0xbe7fff22, 0x3eaaaa78,
  0xbf000000,
].map((bits) => new Float32Array(Uint32Array.of(bits).buffer)[0]);

/** logf of CUDA's libdevice: m in [2/3, 4/3) by a polynomial, plus the exponent times ln 2. */
function libdeviceLog(x: number): number {
  if (x === 0) return -Infinity;
  if (Number.isNaN(x) || x < 0) return NaN;
  if (x === Infinity) return Infinity;
  const isSubnormal = x < smallestNormal;
  const bits = new Int32Array(Float32Array.of(isSubnormal ? x * 2 ** 23 : x).buffer)[0];
  const exponentBits = (bits - 0x3f2aaaab) & 0xff800000;
  const m = new Float32Array(Int32Array.of(bits - exponentBits).buffer)[0];
  const exponent = fusedMultiplyAddFloat32(exponentBits, 2 ** -23, isSubnormal ? -23 : 0);
  const f = subtractFloat32(m, 1);
  const [first, ...rest] = logCoefficients;
  const p = rest.reduce((sum, c) => fusedMultiplyAddFloat32(sum, f, c), first);
  const log = fusedMultiplyAddFloat32(multiplyFloat32(f, p), f, f);
  return fusedMultiplyAddFloat32(exponent, naturalLogOf2, log);
}

/**
 * CUDA's functions as nvcc compiles them: by libdevice, or with use_fast_math, where ln x is lg2.approx times ln 2 and its addend goes
 * into the same fma (the PTX of nvcc 13.0).
 */
export const cudaMath: Readonly<Record<'libdevice' | 'fast', CudaMath>> = {
  libdevice: { exp: libdeviceExp, logPlus: (x, addend) => addFloat32(libdeviceLog(x), addend) },
  fast: {
    exp: (x) => exp2Hardware(multiplyFloat32(x, log2OfE)),
    logPlus: (x, addend) => fusedMultiplyAddFloat32(log2Hardware(x), naturalLogOf2, addend),
  },
};
