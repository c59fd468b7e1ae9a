import { describe, expect, it } from 'vitest';
import {
  doubleDouble,
  multiplyDoubleDoubleByFloat64,
  type DoubleDouble,
} from '../../../src/arith/index.js';
import {
  capLaws,
  compareAlgebra,
  exactFactor,
  exactRowOf,
  factorRatio,
  inferFactor,
  type CapLaw,
  type RealOf,
} from '../../../src/meaning/contracts/index.js';
import { libdeviceTangents } from '../../../src/meaning/contracts/libdevice-tangent.js';
import type { Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { filledProblem, sumNormalNumbers, tensor, uniformNumbers } from '../../setup/problems.js';
import { everyPlace, realWith } from './real-values.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

// No powers of 2, and no fp32 numbers: constants that are rounded differ from those that are not.
const [scale, softcap] = [0.3, 2.7];

function problemOf(changes: Partial<Problem> = {}): Problem {
  const frame = { heads: 2, kvHeads: 1, queries: 3, keys: 40, dim: 16, vDim: 3 };
  const numbers = sumNormalNumbers(uniformNumbers(testSeed));
  return filledProblem(frame, numbers, { scale, softcap, ...changes });
}

/** The real values of a kernel that makes the tanh by a law; of its rows the one that `choose` picks. */
function realBy(problem: Problem, law: CapLaw, factor: DoubleDouble, choose = 0): RealOf {
  return (output, place, column) => {
    const rows = law.rowsOf(place);
    const row = exactRowOf(rows[Math.min(choose, rows.length - 1)], factorRatio(problem, factor));
    return output === 'out' ? row.out[column] : row.lse;
  };
}

/** What is found of such a kernel. */
function compared(problem: Problem, realOf: RealOf) {
  const { factor, out, lse } = compareAlgebra(problem, realOf, everyPlace(problem));
  return { factor, out: out.worst?.distance ?? NaN, lse: lse.worst?.distance ?? NaN };
}

/** tanhf as its PTX writes it, in fp64. */
function tangentOfPtx(x: number): number {
  const size = Math.abs(x);
  const f = Math.fround;
  if (size >= f(9.010913848876953)) return Math.sign(x);
  if (size >= f(0.6)) return Math.sign(x) * (1 - 2 / (2 ** (size * f(2.885390043258667)) + 1));
  const coefficients = [
    f(0.01573968306183815),
    f(-0.05230396240949631),
    f(0.13315297663211823),
    f(-0.33332768082618713),
  ];
  const sum = coefficients.reduce((part, one) => part * x * x + one, 0);
  return sum * x * x * x + x;
}

describe('the laws of a softcap', () => {
  it('are found by name from the values that they give', () => {
    const problem = problemOf();
    const laws = capLaws(problem);
    expect(new Set(laws.map(({ name }) => name)).size).toBe(laws.length);
    const exponentsOf = (law: CapLaw) => law.rowsOf(everyPlace(problem)[0])[0].exponents;
    for (const law of laws) {
      // Some constants are the same after two roundings as after one.
      const first = laws.find(
        (one) => JSON.stringify(exponentsOf(one)) === JSON.stringify(exponentsOf(law)),
      );
      const found = compared(problem, realBy(problem, law, exactFactor(problem)));
      expect(found.factor?.cap?.name).toBe(first?.name);
      expect(found.factor?.name, law.name).toBe('softcap·log2 e');
      expect(found.out, law.name).toBeLessThan(1e-26);
      expect(found.lse, law.name).toBeLessThan(1e-26);
    }
  });

  it('are none where the tanh is the exact one', () => {
    const problem = problemOf();
    const found = compared(problem, realWith(problem, exactFactor(problem)));
    expect(found.factor?.cap).toBeNull();
    expect(found.factor?.name).toBe('softcap·log2 e');
    expect(found.out).toBeLessThan(1e-26);
    expect(capLaws(problemOf({ softcap: null }))).toEqual([]);
  });

  inTurn('do not take in a constant one ulp of fp32 off, nor one of another softcap', () => {
    const problem = problemOf();
    const single = Math.fround(scale / softcap);
    for (const other of [(single * (1 + 2 ** -23) * softcap) / scale, 1 + 2 ** -30]) {
      const planted = problemOf({ scale: scale * other });
      const values = realWith(planted, null);
      const found = compared(problem, values);
      expect(found.out > 1e-25 || found.factor?.name === null).toBe(true);
    }
    const wider = realWith(problemOf({ softcap: softcap * (1 + 2 ** -23) }), null);
    expect(compared(problem, wider).out).toBeGreaterThan(1e-25);
  });

  describe('where all scores of a row are alike', () => {
    const frame = { queries: 6, keys: 5, dim: 1, vDim: 3, format: 'fp32' } as const;
    const numbers = uniformNumbers(testSeed);
    // Half of the queries make arguments below 0.6, the polynomial's, and half beyond.
    const fills = { q: (i: number) => (i % 2 === 0 ? 2 : 9) + numbers(), k: () => 1, v: numbers };
    const alike = filledProblem(frame, fills, { scale, softcap });
    const places = everyPlace(alike);
    const factor = multiplyDoubleDoubleByFloat64(doubleDouble(Math.fround(Math.LOG2E)), scale);
    const lawOf = (problem: Problem, name: string): CapLaw =>
      capLaws(problem).find((law) => law.name === name) ?? expect.fail(name);
    const names = [
      'tanh(fp32(scale/softcap)·q·k)',
      'tanhf(scale/softcap·q·k)',
      'tanhf(fp32(scale/softcap)·q·k)',
    ];

    it.each(names)('are told by the LSE: %s', (name) => {
      const real = realBy(alike, lawOf(alike, name), factor);
      expect(inferFactor(alike, real, places)).toBeNull();
      const found = compared(alike, real);
      expect(found.factor?.cap?.name).toBe(name);
      expect(found.factor?.name).toBe('softcap·fp32(log2 e)');
      expect(found.out).toBeLessThan(1e-26);
      expect(found.lse).toBeLessThan(1e-26);
    });

    inTurn.each(names)('do not take in a constant one ulp of fp32 off: %s', (name) => {
      const law = lawOf({ ...alike, scale: scale * (1 + 2 ** -23) }, name);
      const found = compared(alike, realBy(alike, law, factor));
      expect(found.factor).toBeNull();
      expect(found.out).toBeLessThan(1e-26);
      expect(found.lse).toBeGreaterThan(1e-25);
    });
  });

  it('leave either way of a tanh open where rounding of a score decides', () => {
    const edge = Math.fround(0.6);
    const numbers = [edge, 1.5, -0.75, -edge];
    const problem: Problem = {
      ...problemOf({ scale: 1, softcap: 1 }),
      q: tensor('fp32', [1, 1, 6, 1], (i: number) => [1, 0.7, 1.3, -0.4, 2, 0.9][i]),
      k: tensor('fp32', [1, 1, 4, 1], (i: number) => numbers[i]),
      v: tensor('fp32', [1, 1, 4, 2], (i: number) => [3, -1, 0.5, 2, -4, 1, 7, 5][i]),
    };
    const law = capLaws(problem).find(({ name }) => name === 'tanhf(scale/softcap·q·k)');
    if (law === undefined) throw new Error('no such law');
    expect(law.rowsOf({ batch: 0, head: 0, row: 0 })).toHaveLength(4);
    for (const choice of [0, 1, 2, 3]) {
      const found = compared(problem, realBy(problem, law, exactFactor(problem), choice));
      expect(found.out).toBeLessThan(1e-25);
    }
  });
});

describe("libdevice's tanhf", () => {
  const exact = (x: DoubleDouble) => [doubleDouble(Math.tanh(x.high))];

  it('is the function that its PTX writes, and near the exact one', () => {
    for (let x = -12; x <= 12; x += 0.0371) {
      const [found] = libdeviceTangents(exact)(doubleDouble(x));
      expect(Math.abs(found.high - tangentOfPtx(x)), String(x)).toBeLessThan(1e-15);
      expect(Math.abs(found.high - Math.tanh(x)), String(x)).toBeLessThan(2e-7);
    }
  });
});
