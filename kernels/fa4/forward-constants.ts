/** Rows of a warp, whose lanes decide together whether to rescale. */
export const warpRows = 32;

/** ln 2 as an fp32 number. */
export const naturalLogOf2 = Math.fround(Math.LN2);

/** log2 e as an fp32 number. */
export const log2OfE = Math.fround(Math.LOG2E);
