/** The direction of rounding, as in IEEE 754-2019 section 4.3 (PTX: .rn, .rz, .rm, .rp). */
export type RoundingMode = 'nearest-even' | 'toward-zero' | 'down' | 'up';

/**
 * What a value beyond the largest finite number becomes. `overflow`: as IEEE 754-2019 section 7.4
 * has it for the rounding mode, infinity or the largest finite number; in an `fn` format, which has
 * no infinity, NaN takes infinity's place, also for an infinite value. `saturate`: the largest
 * finite number with the value's sign, for infinite values too (PTX: .satfinite). NaN stays NaN.
 */
export type OverflowMode = 'overflow' | 'saturate';

/** How to round. The default is to nearest, ties to even, with IEEE overflow, keeping subnormals. */
export interface RoundingOptions {
  readonly rounding?: RoundingMode;
  readonly overflow?: OverflowMode;
  /**
   * Whether a tiny result becomes zero with its sign (PTX: .ftz on the result). A result is tiny
   * when the value, rounded as if the exponent had no lower bound, is below the smallest normal
   * number in magnitude; so sm_90 does it (fixtures/silicon/sm_90/edge-cases.json).
   */
  readonly flushSubnormals?: boolean;
}

/** What a rounding mode does to the magnitude of a number of one sign. */
export type MagnitudeRounding = 'nearest-even' | 'toward-zero' | 'away-from-zero';

/** What each rounding mode does to the magnitude of positive and of negative numbers. */
export const magnitudeRounding: Readonly<
  Record<
    RoundingMode,
    { readonly positive: MagnitudeRounding; readonly negative: MagnitudeRounding }
  >
> = {
  'nearest-even': { positive: 'nearest-even', negative: 'nearest-even' },
  'toward-zero': { positive: 'toward-zero', negative: 'toward-zero' },
  down: { positive: 'toward-zero', negative: 'away-from-zero' },
  up: { positive: 'away-from-zero', negative: 'toward-zero' },
};
