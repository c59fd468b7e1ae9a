import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttentionReference } from '../../../oracles/index.js';
import type { KernelBound } from '../../../src/audit/bounds/index.js';
import { problemPremises } from '../../../src/audit/premises/resolve-premises.js';
import {
  joinLseSums,
  lseErrorOf,
  sumLseErrors,
  tanhError,
  testMeanLse,
  type LseSums,
  type StructureInput,
} from '../../../src/audit/structure/head-tests.js';
import type { PooledProjections } from '../../../src/audit/structure/pooled-projections.js';
import { formats, ulp, type FormatName } from '../../../src/formats/index.js';
import { quantities } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

const [batch, heads, queries] = [2, 2, 4] as const;
const all = batch * heads * queries;
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

function near(actual: number, wanted: number, what = ''): void {
  if (actual === wanted) return;
  if (!(Math.abs(actual - wanted) <= 1e-12 * Math.abs(wanted))) expect(actual, what).toBe(wanted);
}

const drawn = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 20 }),
  of: fc.constantFrom<FormatName>('bf16', 'fp16', 'fp32', 'fp64'),
  stored: fc.constantFrom<FormatName>('bf16', 'fp32'),
  softcap: fc.constantFrom(null, 20),
  typicalWeight: fc.constantFrom(2 ** -9, 0.0624, 0.0626),
  /** Rows that nothing is known of. */
  coarse: fc.array(fc.nat(all - 1), { maxLength: 3 }),
  special: fc.array(fc.tuple(fc.nat(all - 1), fc.constantFrom(NaN, Infinity, -Infinity)), {
    maxLength: 3,
  }),
});

/** An LSE beside an oracle's, both made up, and bounds. */
function made({ seed, of, stored, softcap, typicalWeight, coarse, special }: Drawn) {
  const random = pseudorandom(seed);
  const problem = {
    ...filledProblem({ batch, heads, queries, keys: 3, dim: 2, format: of }, random),
    softcap,
  };
  const exact = Float64Array.from({ length: all }, () => 4 * random());
  const plain = handMadeReference({ batch, heads, queries, lse: (row) => exact[row] });
  const radius = exact.map(() => Math.abs(random()) / 64);
  const reference: AttentionReference = {
    ...plain,
    maximum: exact.map(() => 3 * random()),
    quantities: { ...plain.quantities, lse: { ...plain.quantities.lse, radius } },
  };
  const values = exact.map((x) => x + random() / 16);
  for (const [row, x] of special) values[row] = x;
  const bounds = Array.from(exact, (_, row) => ({
    keys: 1 + Math.floor(99 * Math.abs(random())),
    weight: typicalWeight + Math.abs(random()),
    typicalWeight,
    isCoarse: coarse.includes(row),
    declared: { ofWeights: Math.abs(random()) / 4 },
  }));
  const lse = { quantity: quantities[1], format: stored, values };
  const premises = problemPremises(problem, 'bf16');
  const input = {
    problem,
    reference,
    outputs: { out: lse, lse },
    bound: { row: (row: number) => bounds[row] } as unknown as KernelBound,
    premises,
  } as unknown as StructureInput;
  return { input, bounds, premises, reference, values, exact, radius };
}
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;
type Made = ReturnType<typeof made>;

/** The errors of one row that are known, by docs/theory/bounds.md, "The structure". */
function defined(
  { bounds, premises, reference, values, exact, radius }: Made,
  row: number,
  of: Drawn,
) {
  const { keys, weight, typicalWeight, isCoarse, declared } = bounds[row];
  const { elementwise, exponential, logarithm, accumulation, tanh } = premises;
  const error = values[row] - exact[row];
  if (isCoarse || !Number.isFinite(error)) return null;
  const size = Math.abs(exact[row]) + Math.abs(reference.maximum[row]);
  const isShort = of.of === 'bf16' || of.of === 'fp16';
  const systematic = [
    elementwise * size,
    logarithm,
    radius[row],
    ulp(formats[of.stored], Math.abs(exact[row])) / 2,
    of.softcap === null ? 0 : of.softcap * (tanh + 4 * elementwise),
    typicalWeight > 1 / 16 ? typicalWeight : 0,
    // Tensor cores truncate: a sum over keys, and the scores.
    ...(isShort ? [keys * 2 ** -26, (weight - declared.ofWeights - typicalWeight) / 8] : []),
  ];
  const amplitude =
    typicalWeight - exponential + 4 * elementwise * size + Math.sqrt(3 * keys) * accumulation;
  return { error, systematic: sum(systematic), amplitude };
}

describe('the errors of the LSE', () => {
  it('are summed over the rows of a head that anything is known of', () => {
    fc.assert(
      fc.property(drawn, fc.integer({ min: 0, max: batch * heads - 1 }), (of, head) => {
        const case_ = made(of);
        const { input } = case_;
        const units = Int32Array.from({ length: all }, (_, row) => row % 3);
        const rows = Array.from({ length: queries }, (_, i) => head * queries + i);
        const known = rows.flatMap((row) => {
          const wanted = defined(case_, row, of);
          const found = lseErrorOf(input, row);
          if (wanted === null) expect(found).toBeNull();
          else
            for (const name of ['error', 'systematic', 'amplitude'] as const)
              near(found![name], wanted[name], name);
          return wanted === null ? [] : [{ ...wanted, unit: row % 3 }];
        });
        const found = sumLseErrors(input, head, units)!;
        expect(found.rows).toBe(known.length);
        near(found.error, sum(known.map(({ error }) => error)));
        near(found.systematic, sum(known.map(({ systematic }) => systematic)));
        expect([...found.amplitudes.keys()].sort()).toEqual(
          [...new Set(known.map(({ unit }) => unit))].sort(),
        );
        for (const [unit, amplitude] of found.amplitudes)
          near(
            amplitude,
            sum(known.filter((one) => one.unit === unit).map((one) => one.amplitude)),
          );
        const without = (changes: Partial<Record<'outputs' | 'premises', object>>) =>
          sumLseErrors({ ...input, ...changes } as StructureInput, head, units);
        expect(without({ outputs: { ...input.outputs, lse: null } })).toBeNull();
        expect(without({ premises: { ...input.premises, isUsual: false } })).toBeNull();
        expect(lseErrorOf({ ...input, outputs: { ...input.outputs, lse: null } }, 0)).toBeNull();
      }),
    );
  });

  it('of a softcap are those of its tanh', () => {
    const { input, premises } = made(plain);
    expect(tanhError({ ...input.problem, softcap: null }, premises)).toBe(0);
    near(
      tanhError({ ...input.problem, softcap: 3 }, premises),
      3 * (premises.tanh + 4 * premises.elementwise),
    );
  });
});

const plain: Drawn = {
  seed: 1,
  of: 'bf16',
  stored: 'fp32',
  softcap: null,
  typicalWeight: 2 ** -9,
  coarse: [],
  special: [],
};

describe('the mean error of the LSE of a head', () => {
  const number = fc.integer({ min: 1, max: 64 }).map((x) => x / 8);
  const part = fc.record({
    rows: fc.nat(5),
    error: number,
    systematic: number,
    amplitudes: fc
      .uniqueArray(fc.nat(3), { maxLength: 3 })
      .chain((units) =>
        fc
          .array(number, { minLength: units.length, maxLength: units.length })
          .map((sizes) => new Map(units.map((unit, i) => [unit, sizes[i]]))),
      ),
  });

  it('is bounded by units of rows that may err alike, of all parts of the head', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), number, number, (parts, z, exponential) => {
        const joined = joinLseSums(parts);
        const total = (of: (one: LseSums) => number) => sum(parts.map(of));
        const rows = total((one) => one.rows);
        const ofUnits = [0, 1, 2, 3].map((unit) => total((one) => one.amplitudes.get(unit) ?? 0));
        const mean = 0.375;
        const pooled = (of: number) =>
          ({
            rows: of,
            meanExponentialError: (deviations: number) => mean * deviations,
          }) as unknown as PooledProjections;
        const found = testMeanLse(joined, pooled(1), z, exponential);
        expect(testMeanLse(joined, pooled(0), z, exponential)).toBeNull();
        if (rows === 0) {
          expect(found).toBeNull();
          return;
        }
        near(found!.statistic, total((one) => one.error) / rows, 'statistic');
        // Errors are uniform: their variance is a third of their largest square.
        const deviation = Math.sqrt(sum(ofUnits.map((x) => x ** 2)) / 3) / rows;
        near(
          found!.threshold,
          total((one) => one.systematic) / rows + exponential * (1 / 8 + mean * z) + z * deviation,
          'threshold',
        );
      }),
    );
  });
});
