import type { RoundingMode } from '../formats/index.js';

/** How an fp32 operation rounds; the PTX modifiers `.rn`, `.rz`, `.rm`, `.rp` and `.ftz`. */
export interface Float32Options {
  /** Default `nearest-even`. */
  readonly rounding?: RoundingMode;
  /**
   * Replace subnormal operands and tiny results by the zero of the same sign; default false.
   *
   * The PTX ISA ("Floating Point Instructions") says only that `.ftz` flushes subnormal inputs and
   * results to sign-preserving zero. Whether a result is tiny is decided after rounding it to 24
   * bits as if the exponent were unbounded (IEEE 754's tininess after rounding), not on the exact
   * result, nor on the result rounded to the subnormal grid: measured on an H200 (sm_90) with CUDA
   * 13.0 for add, mul and fma in all four modes. (1 − 2^−24)·2^−126 is flushed, though fp32 without
   * `.ftz` rounds it to 2^−126; (1 − 2^−26)·2^−126 is kept as 2^−126, but flushed under `.rz`.
   */
  readonly flushToZero?: boolean;
}
