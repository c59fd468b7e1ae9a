import { bitsOfFloat32, float32Of } from '../../arith/index.js';
import { smallestNormalBits } from './float32-bits.js';

/** The bits of x·factor rounded to nearest even, subnormal results kept, from the bits of x; a NaN gives 0x7fffffff. */
export function scaled(bits: number, factor: number): number {
  return bitsOfFloat32(float32Of(bits) * factor);
}

/** Whether these are the bits of a subnormal number, of either sign: neither zero nor normal. */
export function isSubnormal(bits: number): boolean {
  const magnitude = bits & 0x7fffffff;
  return magnitude !== 0 && magnitude < smallestNormalBits;
}
