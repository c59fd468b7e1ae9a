/** Rows of a warp, whose lanes decide together whether to rescale. */
export const warpRows = 32;

/** ln 2 as an fp32 number. */
export const naturalLogOf2 = Math.fround(Math.LN2);
