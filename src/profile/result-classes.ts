/** Number of results in each class, and the smallest and the largest result that is not NaN. */
export interface ResultClasses {
  readonly zeros: number;
  readonly subnormals: number;
  readonly infinities: number;
  readonly nans: number;
  /**
   * The smallest result in fp32 order: 0 stands for +0, −1 for −0; `least` is 2^31 − 1 and `most` −2^31 when there is
   * none.
   */
  readonly least: number;
  readonly most: number;
}

/** The classes of no results. */
export const noClasses: ResultClasses = {
  zeros: 0,
  subnormals: 0,
  infinities: 0,
  nans: 0,
  least: 2 ** 31 - 1,
  most: -(2 ** 31),
};

/** The combined classes of both. */
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
