/**
 * Largest relative error of ex2.approx.ftz.f32 where the result is normal: over all inputs, on sm_90
 * silicon (`flashproof profile exp2`: 1.4396157e-7 for negative x, less for positive). Rounded up.
 */
export const hardwareExp2Error = 1.44e-7;

/** Below this ex2.approx.ftz.f32 flushes results to zero. */
export const hardwareExp2Flush = 2 ** -126;

/**
 * Largest relative error of rcp.approx.ftz.f32 for results that are normal numbers: over all inputs,
 * on sm_90 silicon (`flashproof profile rcp`: 9.82917e-8). Rounded up.
 */
export const hardwareReciprocalError = 9.83e-8;

/**
 * Largest error of lg2.approx.ftz.f32, absolute for results below 1 in magnitude and relative to
 * larger ones: over all inputs, on sm_90 silicon (`flashproof profile log2`). Also what the PTX ISA
 * promises.
 */
export const hardwareLog2Error = 2 ** -22;
