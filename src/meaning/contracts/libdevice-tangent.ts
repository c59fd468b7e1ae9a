import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  type DoubleDouble,
} from '../../arith/index.js';
import { fp32Of } from './fp32-of.js';
import { log2eWords } from '../../../oracles/index.js';

/**
 * `__nv_tanhf` of NVIDIA's libdevice, with its constants as the PTX of compiled kernels has them: from `least` on it is
 * 1 − 2 / (2^(x · octave) + 1), from `saturated` on 1, and below x + x · x² · (the polynomial in x²).
 */
const tangent = {
  least: fp32Of(0x3f19999a),
  saturated: fp32Of(0x41102cb4),
  octave: fp32Of(0x4038aa3b),
  /** From the highest power on. */
  coefficients: [0x3c80f082, 0xbd563cae, 0x3e085941, 0xbeaaa9ed].map(fp32Of),
};

/** Rounded scores within this share of an edge may lie beyond it. */
const edge = 2 ** -18;

function polynomialOf(x: DoubleDouble): DoubleDouble {
  const square = multiplyDoubleDouble(x, x);
  const sum = tangent.coefficients.reduce(
    (part, coefficient) =>
      addFloat64ToDoubleDouble(multiplyDoubleDouble(part, square), coefficient),
    doubleDouble(0),
  );
  return addDoubleDouble(x, multiplyDoubleDouble(multiplyDoubleDouble(sum, square), x));
}

/**
 * What `__nv_tanhf` gives if nothing is rounded: it is some 1e-7 from the exact tanh. Two values, that of the number first, where rounding of the
 * number may decide between its three parts.
 * @param exact the exact tanh
 */
export function libdeviceTangents(
  exact: (x: DoubleDouble) => readonly DoubleDouble[],
): (x: DoubleDouble) => readonly DoubleDouble[] {
  // 1 − 2 / (2^w + 1) is the tanh of w · ln 2 / 2, which the rounded constant makes of another number.
  const stretch = divideDoubleDouble(
    doubleDouble(tangent.octave),
    multiplyDoubleDoubleByFloat64(log2eWords(), 2),
  );
  const partOf = (x: DoubleDouble, size: number): DoubleDouble => {
    if (size >= tangent.saturated) return doubleDouble(Math.sign(x.high));
    if (size < tangent.least) return polynomialOf(x);
    return exact(multiplyDoubleDouble(x, stretch))[0];
  };
  return (x) => {
    const size = Math.abs(x.high);
    const isOpen = [tangent.least, tangent.saturated].find(
      (at) => Math.abs(size - at) <= edge * at,
    );
    if (isOpen === undefined) return [partOf(x, size)];
    const isAbove = size >= isOpen;
    return [isAbove, !isAbove].map((above) => partOf(x, isOpen * (above ? 1 : 1 - edge)));
  };
}
