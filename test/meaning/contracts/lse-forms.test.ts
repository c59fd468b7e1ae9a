import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../../src/arith/index.js';
import {
  compareAlgebra,
  exactAttentionRow,
  factorRatio,
  type RealOf,
} from '../../../src/meaning/contracts/index.js';
import {
  libdeviceBinaryLogarithms,
  libdeviceLogarithms,
} from '../../../src/meaning/contracts/libdevice-logarithms.js';
import type { LseParts } from '../../../src/meaning/contracts/lse-forms.js';
import { ln2Words, log2OfDoubleDouble } from '../../../oracles/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { boxMullerNumbers, filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { everyPlace, realWith } from './real-values.js';

const laws = [
  { name: 'logf', of: libdeviceLogarithms, exact: Math.log, least: 2 / 3 },
  { name: 'log2f', of: libdeviceBinaryLogarithms, exact: Math.log2, least: Math.SQRT1_2 },
];

describe.each(laws)('$name of libdevice without rounding', ({ of, exact, least }) => {
  it('is within an ulp of fp32 of the exact logarithm', () => {
    fc.assert(
      fc.property(fc.double({ min: 2 ** -100, max: 2 ** 100, noNaN: true }), (x) => {
        for (const { high } of of(doubleDouble(x)))
          expect(Math.abs(high - exact(x))).toBeLessThan(
            2 ** -24 * Math.max(Math.abs(exact(x)), 2 ** -24),
          );
      }),
      { seed: testSeed, numRuns: scaled(1000) },
    );
  });

  it('is 0 at 1, and two values only where rounding decides which power of two is split off', () => {
    expect(of(doubleDouble(1))).toEqual([{ high: 0, low: 0 }]);
    for (const exponent of [-3, 0, 7]) {
      expect(of(doubleDouble(2 ** exponent * 1.01))).toHaveLength(1);
      expect(of(doubleDouble(2 ** exponent * Math.fround(least)))).toHaveLength(2);
    }
  });
});

const numbers = boxMullerNumbers(uniformNumbers(testSeed));
const problemOf = (changes: Partial<Problem> = {}): Problem =>
  filledProblem({ heads: 2, queries: 6, keys: 20, dim: 4 }, numbers, { scale: 0.3, ...changes });
const rounded = doubleDouble(Math.fround(Math.LN2));

/** A maximum and a logarithm of a kernel's own. */
type Form = (parts: LseParts, largest: NonNullable<LseParts['largest']>) => DoubleDouble;

const forms: Readonly<Record<string, Form>> = {
  'max·scale + ln': ({ sum }, { natural }) =>
    addDoubleDouble(natural, multiplyDoubleDouble(log2OfDoubleDouble(sum), ln2Words())),
  'max·scale + fp32(ln 2)·log2': ({ sum }, { natural }) =>
    addDoubleDouble(natural, multiplyDoubleDouble(log2OfDoubleDouble(sum), rounded)),
  'max·factor·fp32(ln 2) + logf': ({ sum }, { octaves }) =>
    addDoubleDouble(multiplyDoubleDouble(octaves, rounded), libdeviceLogarithms(sum)[0]),
};

/** The real values of a kernel whose factor is not the exact one. */
function realBy(problem: Problem, form: Form): RealOf {
  const factor = doubleDouble(Math.fround(problem.scale * Math.LOG2E));
  const plain = realWith(problem, factor);
  return (output, place, column) => {
    if (output === 'out') return plain(output, place, column);
    const { lseParts } = exactAttentionRow(problem, place, factor);
    return lseParts.largest === null ? lseParts.octaves : form(lseParts, lseParts.largest);
  };
}

describe('the LSE of a kernel whose constants do not cancel', () => {
  const problem = problemOf();
  const places = everyPlace(problem);

  it.each(Object.entries(forms))('is known by its form: %s', (name, form) => {
    const { lse } = compareAlgebra(problem, realBy(problem, form), places);
    expect(lse).toMatchObject({ base: 'e', unit: name });
    expect(lse.worst?.distance).toBeLessThan(1e-27);
  });

  it.each(Object.entries(forms))('is of no form where a row has a wrong maximum: %s', (_, form) => {
    // Another maximum leaves the exact LSE, and moves one of constants that do not cancel.
    const half = doubleDouble(1.5);
    const by = log2OfDoubleDouble(half);
    const factor = doubleDouble(Math.fround(problem.scale * Math.LOG2E));
    const exact = divideDoubleDouble(by, factorRatio(problem, factor)!);
    const moved = realBy(problem, ({ sum, ...others }, { octaves, natural }) =>
      form(
        { ...others, sum: multiplyDoubleDouble(sum, half) },
        {
          octaves: subtractDoubleDouble(octaves, by),
          natural: subtractDoubleDouble(natural, multiplyDoubleDouble(exact, ln2Words())),
        },
      ),
    );
    const wrong: RealOf = (output, place, column) =>
      place.row === 3 ? moved(output, place, column) : realBy(problem, form)(output, place, column);
    const { lse } = compareAlgebra(problem, wrong, places);
    expect(lse.worst?.distance).toBeGreaterThan(1e-13);
    expect(lse.worst?.distance).toBeLessThan(1e-6);
  });

  it('has the sink in its sum', () => {
    const logits = tensor('fp32', [2], () => -1);
    const sunk = problemOf({ sink: { logits, inLse: true } });
    const real = realBy(sunk, forms['max·scale + ln']);
    const { lse } = compareAlgebra(sunk, real, everyPlace(sunk));
    expect(lse.worst?.distance).toBeLessThan(1e-27);
  });
});
