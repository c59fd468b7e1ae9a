import { smallestNormalBits } from './float32-bits.js';

const view = new DataView(new ArrayBuffer(4));

/** The bits of x·factor rounded to nearest even, subnormal results kept, from the bits of x. */
export function scaled(bits: number, factor: number): number {
  view.setUint32(0, bits);
  view.setFloat32(0, view.getFloat32(0) * factor);
  return view.getUint32(0);
}

/** Whether these are the bits of a subnormal number, of either sign: neither zero nor normal. */
export function isSubnormal(bits: number): boolean {
  const magnitude = bits & 0x7fffffff;
  return magnitude !== 0 && magnitude < smallestNormalBits;
}
