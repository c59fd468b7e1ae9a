import { exp2ApproxFtz } from '../../src/hardware/index.js';
import type { KernelExponential } from '../kernel-model.js';
import { exp2Polynomial } from '../online-softmax/exp2-polynomial.js';
import { fragmentColumns, polynomialShare } from './exp2-tuning.js';
import type { Fa4Configuration } from './configuration.js';

/** A function of fp32 bits as one of fp32 numbers. */
function float32Function(ofBits: (bits: number) => number): (x: number) => number {
  const float = new Float32Array(1);
  const word = new Uint32Array(float.buffer);
  return (x) => {
    float[0] = x;
    word[0] = ofBits(word[0]);
    return float[0];
  };
}

/** The ways in which a configuration computes 2^x; the polynomial, if it has one, first. */
export function fa4Exponentials({ exp2, blockKeys }: Fa4Configuration): KernelExponential[] {
  const share = polynomialShare(exp2, blockKeys / fragmentColumns);
  const unit: KernelExponential = {
    name: 'ex2.approx.ftz.f32',
    place: 'The special function unit',
    share: 1 - share,
    exp2: float32Function(exp2ApproxFtz),
  };
  if (share === 0) return [unit];
  const polynomial: KernelExponential = {
    name: `Polynomial of degree ${exp2.degree}`,
    place: 'In software',
    share,
    exp2: (x) => exp2Polynomial(x, exp2.degree),
  };
  return [polynomial, unit];
}
