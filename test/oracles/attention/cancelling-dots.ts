import * as fc from 'fast-check';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { singleHead } from '../../setup/problems.js';

const cancellingFormats: readonly FormatName[] = ['fp64', 'fp32', 'tf32', 'bf16'];

/**
 * Problems whose dot products cancel: products of a common size up to 2^80 in pairs of opposite sign,
 * some of them an ulp apart, beside products of moderate size. The norms say nothing about the
 * scores there, so that errors of the dot products decide.
 */
export const cancellingDots: fc.Arbitrary<Problem> = fc
  .tuple(
    fc.constantFrom(...cancellingFormats),
    fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    fc.integer({ min: 1, max: 4 }),
    fc.integer({ min: 1, max: 9 }),
    fc.constantFrom(null, 2, 30),
  )
  .map(([name, seed, pairs, keys, softcap]) => {
    const format = formats[name];
    const random = randomValues(seed);
    const exponents = Array.from({ length: pairs }, () => random.integer(0, 40));
    const shared = Array.from({ length: pairs }, () => 1 + random.uniform());
    const jitter = () =>
      1 + random.integer(-1, 1) * random.integer(0, 1) * 2 ** (1 - format.precision);
    const row = (sign: number) => [
      ...shared.flatMap((x, i) => {
        const value = round(format, x * 2 ** exponents[i]);
        return [value * jitter(), sign * value * jitter()];
      }),
      random.normal(),
      random.normal(),
    ];
    return singleHead(
      name,
      {
        q: [row(1), row(1)],
        k: Array.from({ length: keys }, () => row(-1)),
        v: Array.from({ length: keys }, () => [random.normal(), random.normal() * 2 ** -30]),
      },
      { softcap, scale: 2 ** -random.integer(0, 60) },
    );
  });
