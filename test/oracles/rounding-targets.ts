import { formats, type NumberFormat, type RoundingMode } from '../../src/formats/index.js';
import type { MpfrFunction } from './mpfr-correct-rounding.js';
import { testSeed } from '../setup/effort.js';

/** The formats with infinities to which the elementary functions are rounded. */
export const roundingTargets: readonly NumberFormat[] = [
  formats.fp32,
  formats.bf16,
  formats.fp16,
  formats.tf32,
  formats.e5m2,
];

/** Those that the random runs check. */
const checked = [formats.fp32, formats.bf16, formats.fp16];

export const roundingModes: readonly RoundingMode[] = ['nearest-even', 'toward-zero', 'down', 'up'];

export function float32FromBits(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0];
}

/** Runs `use` that often with random numbers in [0, 1) that follow from TEST_SEED. */
export function runSeeded(runs: number, use: (random: () => number) => void): void {
  let state = testSeed | 0;
  const word = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  const random = (): number => (word() >>> 5) * 2 ** -27 + (word() >>> 6) * 2 ** -53;
  for (let run = 0; run < runs; run++) use(random);
}

/** Fails unless the function rounds f(x) as MPFR does, in each format and mode. */
export function expectCorrectRounding(
  name: string,
  rounded: MpfrFunction,
  reference: MpfrFunction,
  x: number,
): void {
  for (const format of checked)
    for (const mode of roundingModes) {
      const got = rounded(x, format, mode);
      const want = reference(x, format, mode);
      if (!Object.is(got, want))
        throw new Error(`${name}(${x}) to ${format.name} ${mode} is ${got}, by MPFR ${want}`);
    }
}
