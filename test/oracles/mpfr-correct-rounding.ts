import { init, mpfr_rnd_t } from 'gmp-wasm';
import type { NumberFormat, RoundingMode } from '../../src/formats/index.js';

/** f(x) correctly rounded to an IEEE format by MPFR alone: exponent range and subnormals are its own. */
export type MpfrFunction = (x: number, format: NumberFormat, rounding: RoundingMode) => number;

const modes: Readonly<Record<RoundingMode, mpfr_rnd_t>> = {
  'nearest-even': mpfr_rnd_t.MPFR_RNDN,
  'toward-zero': mpfr_rnd_t.MPFR_RNDZ,
  down: mpfr_rnd_t.MPFR_RNDD,
  up: mpfr_rnd_t.MPFR_RNDU,
};

/** MPFR's exponent range outside the emulation: room for all fp64 inputs and what comes of them. */
const widest = 2 ** 29;

export interface CorrectlyRounded {
  readonly exp2: MpfrFunction;
  readonly log2: MpfrFunction;
  /** |f(x) − (high + low)| at 300 bits. */
  readonly distance: (name: 'exp2' | 'log2', x: number, high: number, low?: number) => number;
}

/** Loads MPFR. The numbers it computes with live as long as the instance. */
export async function loadCorrectlyRounded(): Promise<CorrectlyRounded> {
  const { binding } = await init();
  const make = (bits: number): number => {
    const number = binding.mpfr_t();
    binding.mpfr_init2(number, bits);
    return number;
  };
  const input = make(53);
  const output = make(53);
  const exact = make(300);

  function rounded(name: 'exp2' | 'log2'): MpfrFunction {
    return (x, format, rounding) => {
      const mode = modes[rounding];
      binding.mpfr_set_emin(-widest);
      binding.mpfr_set_emax(widest);
      binding.mpfr_set_d(input, x, mpfr_rnd_t.MPFR_RNDN);
      binding.mpfr_set_prec(output, format.precision);
      let inexact =
        name === 'exp2'
          ? binding.mpfr_exp2(output, input, mode)
          : binding.mpfr_log2(output, input, mode);
      // MPFR's significands lie in [1/2, 1), one exponent above those of the formats.
      binding.mpfr_set_emin(format.minExponent - format.precision + 2);
      binding.mpfr_set_emax(format.maxExponent + 1);
      inexact = binding.mpfr_check_range(output, inexact, mode);
      binding.mpfr_subnormalize(output, inexact, mode);
      return binding.mpfr_get_d(output, mpfr_rnd_t.MPFR_RNDN);
    };
  }

  function distance(name: 'exp2' | 'log2', x: number, high: number, low = 0): number {
    binding.mpfr_set_emin(-widest);
    binding.mpfr_set_emax(widest);
    binding.mpfr_set_d(input, x, mpfr_rnd_t.MPFR_RNDN);
    if (name === 'exp2') binding.mpfr_exp2(exact, input, mpfr_rnd_t.MPFR_RNDN);
    else binding.mpfr_log2(exact, input, mpfr_rnd_t.MPFR_RNDN);
    binding.mpfr_sub_d(exact, exact, high, mpfr_rnd_t.MPFR_RNDN);
    binding.mpfr_sub_d(exact, exact, low, mpfr_rnd_t.MPFR_RNDN);
    return Math.abs(binding.mpfr_get_d(exact, mpfr_rnd_t.MPFR_RNDN));
  }

  return { exp2: rounded('exp2'), log2: rounded('log2'), distance };
}
