import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { compareRecurrence, constantsText } from '../../../src/meaning/recurrent/index.js';
import { recurrentShape, type RecurrentProblem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { madeGateProblem } from '../../setup/made-gates.js';
import { loadMpfr, type Arena, type Real } from '../../oracles/mpfr.js';
import { referenceGates } from '../../oracles/recurrent/reference-gates.js';
import { referenceRecurrence } from '../../oracles/recurrent/reference-recurrence.js';

const mpfr = await loadMpfr();

/** The arithmetic of an arena whose e^x is 2^(fp32(log2 e) x), and whose logarithm is fp32(ln 2) log2. */
function rounded(arena: Arena) {
  const ln2 = arena.log(arena.of(2));
  const factor = arena.multiply(arena.of(Math.fround(Math.LOG2E)), ln2);
  const unit = arena.divide(arena.of(Math.fround(Math.LN2)), ln2);
  return {
    of: (x: number) => arena.of(x),
    add: (a: Real, b: Real) => arena.add(a, b),
    subtract: (a: Real, b: Real) => arena.subtract(a, b),
    multiply: (a: Real, b: Real) => arena.multiply(a, b),
    divide: (a: Real, b: Real) => arena.divide(a, b),
    squareRoot: (a: Real) => arena.squareRoot(a),
    exp: (a: Real) => arena.exp(arena.multiply(a, factor)),
    log: (a: Real) => arena.multiply(arena.log(a), unit),
  };
}

/** Compares with a kernel in MPFR, whose constants are exact or rounded. */
function compare(problem: RecurrentProblem, isRounded: boolean, isBinary = false) {
  const { tokens, valueHeads, keyDim, valueDim } = recurrentShape(problem);
  return mpfr.withPrecision(1200, (arena) => {
    const arithmetic = isRounded ? rounded(arena) : arena;
    const made = referenceGates(problem, arithmetic);
    const { out, finalState } = referenceRecurrence(
      problem,
      arithmetic,
      isBinary ? arena.log(arena.of(2)) : undefined,
      made,
    );
    const doubled = (x: Real) => {
      const high = arena.toNumber(x);
      return { high, low: arena.toNumber(arena.subtract(x, arena.of(high))) };
    };
    const values = { out: out.map(doubled), final_state: finalState.map(doubled) };
    return compareRecurrence(problem, ['out', 'final_state'], {
      decisive: (output, { batch, head, row }, column) => {
        const at =
          output === 'out'
            ? (batch * tokens + row) * valueHeads + head
            : (batch * valueHeads + head) * keyDim + row;
        return values[output][at * valueDim + column];
      },
      others: null,
    });
  });
}

it(
  'compares gates and write strengths that are made, with the constants of the kernel',
  { timeout: 300_000 },
  () => {
    fc.assert(
      fc.property(
        fc.nat(2 ** 31),
        fc.constantFrom('simple-gla', 'gla', 'gated-delta', 'kda'),
        fc.constantFrom(-6, 0, 3),
        fc.boolean(),
        (seed, family, bias, isRounded) => {
          const problem = madeGateProblem({ seed, family, lengths: [4, 2], bias });
          const { constants, outputs } = compare(problem, isRounded);
          expect(constantsText(constants, null)).toBe(
            isRounded
              ? '2^(fp32(log2 e)·g) and softplus by fp32(ln 2)·log2 and ε'
              : '2^(log2 e·g) and softplus by ln and ε',
          );
          for (const { worst, worstIdeal } of outputs) {
            expect(worst!.distance).toBeLessThan(1e-27);
            // The exact law is another than that of rounded constants.
            expect(worstIdeal!.distance > 1e-12).toBe(isRounded);
          }
        },
      ),
      { seed: testSeed, numRuns: scaled(20) },
    );
  },
);

it('compares gates of base 2, which no constant multiplies', () => {
  const { gateInputs, ...rest } = madeGateProblem({
    seed: 3,
    family: 'gla',
    lengths: [4, 2],
  });
  const problem: RecurrentProblem = { ...rest, g: gateInputs!.a };
  const binary = compare({ ...problem, gateBase: 2 }, false, true);
  expect(constantsText(binary.constants, null)).toBe('ε');
  for (const { worst } of binary.outputs) expect(worst!.distance).toBeLessThan(1e-27);
  for (const { worst } of compare(problem, false, true).outputs)
    expect(worst!.distance).toBeGreaterThan(1e-3);
});
