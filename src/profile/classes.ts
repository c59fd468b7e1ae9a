import type { ResultClasses } from './accumulate.js';

/** The classes of no results. */
export const noClasses: ResultClasses = {
  zeros: 0,
  subnormals: 0,
  infinities: 0,
  nans: 0,
  least: 2 ** 31 - 1,
  most: -(2 ** 31),
};

/** The classes of the results of both. */
export function mergeClasses(a: ResultClasses, b: ResultClasses): ResultClasses {
  return {
    zeros: a.zeros + b.zeros,
    subnormals: a.subnormals + b.subnormals,
    infinities: a.infinities + b.infinities,
    nans: a.nans + b.nans,
    least: Math.min(a.least, b.least),
    most: Math.max(a.most, b.most),
  };
}

/** Whether all results are one and the same number. */
export function isConstant({ nans, least, most }: ResultClasses): boolean {
  return nans === 0 && least === most;
}

/** The fp32 bit pattern of `least` or `most`. */
export function bitsOfOrder(order: number): number {
  return order >= 0 ? order : 2 ** 31 - 1 - order;
}
