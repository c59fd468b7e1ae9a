import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import {
  exp2Coefficients,
  exp2PolynomialBits,
  type PolynomialDegree,
} from '../../../kernels/fa4/index.js';
import { findArithmetic, warpLanes } from '../../../src/machine/index.js';
import { firstDifference } from '../memory/first-difference.js';
import { randomRegisters } from './fragments.js';
import {
  createRegisters,
  execute,
  immediate,
  immediateFloat32,
  registerRun,
  type Operand,
} from './registers.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const degrees: readonly PolynomialDegree[] = [1, 2, 3, 4, 5];
const columns = 16;
const toInteger = immediateFloat32(2 ** 23 + 2 ** 22);

function run(name: string, destination: Operand, ...sources: Operand[]): void {
  execute(findArithmetic(name), destination, sources, columns);
}

/** FlashAttention-4's software exp2 as the machine's instructions, on 16 registers of each lane. */
function softwareExp2(x: Operand, degree: PolynomialDegree, isPacked: boolean): Uint32Array {
  const temporaries = createRegisters(4 * columns);
  const [clamped, rounded, fraction, p] = [0, 1, 2, 3].map((k) =>
    registerRun(temporaries, k * columns),
  );
  const pairs = { count: columns / 2 };
  const arithmetic = (name: string, destination: Operand, ...sources: Operand[]): void =>
    isPacked
      ? execute(findArithmetic(`${name}x2`), destination, sources, pairs.count)
      : run(name, destination, ...sources);
  const [highest, ...lower] = exp2Coefficients[degree].toReversed();

  run('max.f32', clamped, x, immediateFloat32(-127));
  arithmetic('add.rm.ftz.f32', rounded, clamped, toInteger);
  arithmetic('sub.rn.f32', fraction, rounded, toInteger);
  arithmetic('sub.rn.f32', fraction, clamped, fraction);
  run('mov.b32', p, immediateFloat32(highest));
  for (const c of lower) arithmetic('fma.rn.f32', p, p, fraction, immediateFloat32(c));
  run('shl.b32', rounded, rounded, immediate(23));
  run('add.s32', p, rounded, p);

  return Uint32Array.from({ length: warpLanes * columns }, (_, i) => {
    const lane = Math.floor(i / columns);
    return temporaries.words[lane * temporaries.registersPerLane + 3 * columns + (i % columns)];
  });
}

describe.each(degrees)("FlashAttention-4's exp2 of degree %i", (degree) => {
  inTurn.each([false, true])('has the bits of the model, packed: %s', (isPacked) => {
    const input = fc.oneof(
      fc.float({ min: -130, max: 130 }),
      fc.float({ min: Math.fround(-1e-6), max: Math.fround(1e-6) }),
      fc.constantFrom(0, -0, -126, -127, 127, 128, NaN, Infinity, -Infinity, 2 ** 22, -(2 ** -149)),
    );
    fc.assert(
      fc.property(
        fc.array(input, { minLength: 64, maxLength: 64 }),
        fc.integer(),
        (values, seed) => {
          const x = randomRegisters(columns, seed);
          x.floats.set(values, 100);
          const results = softwareExp2(registerRun(x, 0), degree, isPacked);
          const expected = Uint32Array.from(x.floats, (value) => exp2PolynomialBits(value, degree));
          expect(firstDifference(results, expected)).toBe(null);
        },
      ),
      { numRuns: 20 },
    );
  });
});
