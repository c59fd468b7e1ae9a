import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  type DoubleDouble,
} from '../../arith/index.js';
import { fp32Of } from './fp32-of.js';

/** A logarithm of fp32 by a polynomial: of x = 2^n (1 + f) it is n · octave + f · slope + f² · (the polynomial in f). */
interface PolynomialLogarithm {
  /** 1 + f is at least this and less than its double. */
  readonly leastSignificand: number;
  readonly octave: number;
  readonly slope: number;
  /** From the highest power on. */
  readonly coefficients: readonly number[];
}

/**
 * The logarithms of NVIDIA's libdevice (`__nv_logf`, `__nv_log2f`), which `logf`, `log2f` and Triton's `tl.log` and `tl.log2` compile
 * to: with their constants as the PTX of Triton's kernels in fixtures/ptx has them.
 */
const natural: PolynomialLogarithm = {
  leastSignificand: fp32Of(0x3f2aaaab),
  octave: fp32Of(0x3f317218),
  slope: 1,
  coefficients: [
    ...[0xbe055027, 0x3e1039f6, 0xbdf8cdcc, 0x3e0f2955, 0xbe2ad8b9],
    ...[0x3e4ced0b, 0xbe7fff22, 0x3eaaaa78, 0xbf000000],
  ].map(fp32Of),
};
const binary: PolynomialLogarithm = {
  leastSignificand: fp32Of(0x3f3504f3),
  octave: 1,
  slope: fp32Of(0x3fb8aa3b),
  coefficients: [
    ...[0x3dc6b27f, 0xbe2c7f30, 0x3e2fcf2a, 0xbe374e43, 0x3e520bf4],
    ...[0xbe763c8b, 0x3e93bf99, 0xbeb8aa49, 0x3ef6384a, 0xbf38aa3b],
  ].map(fp32Of),
};

/** The bits of the rounded number say which power of two is split off: within this of the edge, in octaves, either. */
const edge = 2 ** -21;

function logarithmWith(
  { octave, slope, coefficients }: PolynomialLogarithm,
  { high, low }: DoubleDouble,
  exponent: number,
): DoubleDouble {
  const scale = 2 ** -exponent;
  const f = addFloat64ToDoubleDouble({ high: high * scale, low: low * scale }, -1);
  const polynomial = coefficients.reduce(
    (sum, coefficient) => addFloat64ToDoubleDouble(multiplyDoubleDouble(sum, f), coefficient),
    doubleDouble(0),
  );
  const ofSignificand = addDoubleDouble(
    multiplyDoubleDoubleByFloat64(f, slope),
    multiplyDoubleDouble(multiplyDoubleDouble(polynomial, f), f),
  );
  return addDoubleDouble(ofSignificand, doubleDouble(exponent * octave));
}

function logarithmsOf(law: PolynomialLogarithm, x: DoubleDouble): readonly DoubleDouble[] {
  const octaves = Math.log2(x.high / law.leastSignificand);
  const exponents = new Set([Math.floor(octaves - edge), Math.floor(octaves + edge)]);
  return [...exponents].map((exponent) => logarithmWith(law, x, exponent));
}

/**
 * What `__nv_logf` gives for a positive number if nothing is rounded: it is some 1e-8 from the exact logarithm. Two values where
 * rounding of the number may decide which power of two is split off.
 */
export function libdeviceLogarithms(x: DoubleDouble): readonly DoubleDouble[] {
  return logarithmsOf(natural, x);
}

/** The same for `__nv_log2f`. */
export function libdeviceBinaryLogarithms(x: DoubleDouble): readonly DoubleDouble[] {
  return logarithmsOf(binary, x);
}
