import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outputRounding } from '../../../src/audit/bounds/index.js';
import { judgeMerge } from '../../../src/audit/splits/judge-merge.js';
import { mergeParts, type PartialResults } from '../../../src/audit/splits/merge-parts.js';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import { quantities } from '../../../src/problem/index.js';

const [rows, dim] = [3, 2] as const;
const [out, lse] = quantities;

const number = fc.integer({ min: -64, max: 64 }).map((x) => x / 8);
const special = fc.constantFrom(-Infinity, -Infinity, Infinity, NaN);
const often = <T>(usual: fc.Arbitrary<T>, seldom: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: seldom });
const arrayOf = (length: number, one: fc.Arbitrary<number>) =>
  fc
    .array(one, { minLength: length, maxLength: length })
    .map((numbers) => Float64Array.from(numbers));

/** Parts by chance, with rows that some of them, or all, see no key of. */
const someParts = fc.integer({ min: 1, max: 4 }).chain((splits) =>
  fc.record({
    splits: fc.constant(splits),
    rows: fc.constant(rows),
    dim: fc.constant(dim),
    out: arrayOf(splits * rows * dim, often(number, special)),
    lse: arrayOf(splits * rows, often(number, special)),
  }),
);

/** What kernels that merge in fp32 may be off by, in weights that are off by roundings of the LSE in use. */
function weightError({ splits, lse: all }: PartialResults, row: number): number {
  const sizes = Array.from({ length: splits }, (_, split) => Math.abs(all[split * rows + row]));
  const largest = Math.max(0, ...sizes.filter((size) => Number.isFinite(size)));
  const u = 2 ** -24;
  // Exponentials and logarithms of GPUs have 2^-21.
  return 8 * u * (2 * largest + 1) + 2 * 2 ** -21 + (splits + 4) * u;
}

/** The part of its limit that an error takes: none for the same special value, too much for another. */
function usedOf(given: number, exact: number, limit: number): number {
  if (given === exact || (Number.isNaN(given) && Number.isNaN(exact))) return 0;
  const error = Math.abs(given - exact);
  return Number.isNaN(error) ? Infinity : error / limit;
}

function near(actual: number, wanted: number): void {
  if (actual === wanted || (Number.isNaN(actual) && Number.isNaN(wanted))) return;
  if (!(Math.abs(actual - wanted) <= 1e-12 * wanted)) expect(actual).toBe(wanted);
}

describe('the merge of parts', () => {
  it('is judged by what a merge in fp32 may be off by, element by element', () => {
    fc.assert(
      fc.property(
        someParts,
        someParts,
        fc.constantFrom<FormatName>('bf16', 'fp32'),
        fc.constantFrom('nearest' as const, 'stochastic' as const),
        arrayOf(rows * dim, often(fc.constant(0), number)),
        arrayOf(rows, often(fc.constant(0), number)),
        fc.constantFrom(0, 2 ** -20, 1),
        (parts, lseParts, format, rounding, errors, lseErrors, size) => {
          const [merged, mergedLse] = [mergeParts(parts), mergeParts(lseParts)];
          const values = merged.out.map((x, i) => x + size * errors[i]);
          const lseValues = mergedLse.lse.map((x, i) => x + size * lseErrors[i]);
          const used = values.map((x, i) => {
            const exact = merged.out[i];
            const inner =
              weightError(parts, Math.floor(i / dim)) * merged.magnitude[i] +
              merged.outRadius[i] +
              (parts.splits + 2) * 2 ** -126;
            return usedOf(x, exact, inner + outputRounding(format, exact, inner, rounding));
          });
          const ofLse = lseValues.map((x, row) => {
            const exact = mergedLse.lse[row];
            const inner =
              weightError(lseParts, row) +
              2 ** -22 * Math.abs(Number.isNaN(exact) ? 0 : exact) +
              mergedLse.lseRadius[row];
            return usedOf(x, exact, inner + outputRounding('fp32', exact, inner, 'nearest'));
          });
          const given = { out: { quantity: out, format, values } };
          const whole = judgeMerge(
            parts,
            { ...given, lse: { quantity: lse, format: 'fp32', values: lseValues } },
            lseParts,
            rounding,
          );
          const worst = Math.max(0, ...used);
          const worstOfLse = Math.max(0, ...ofLse);
          near(whole.used, worst);
          near(whole.lseUsed!, worstOfLse);
          expect(whole.pass).toBe(worst <= 1 && worstOfLse <= 1);
          const alone = judgeMerge(parts, { ...given, lse: null }, lseParts, rounding);
          near(alone.used, worst);
          expect(alone).toMatchObject({ pass: worst <= 1, lseUsed: null });
          if (worst <= 1) expect(alone.causes).toEqual([]);
        },
      ),
    );
  });

  it('is told from others that give an output: other weights, or a part too few or too often', () => {
    const natural = (l: number) => Math.exp(l);
    const ways: Record<string, (l: number, split: number) => number> = {
      'the parts were merged with weights 2^LSE, as of LSEs in base 2': (l) => 2 ** l,
      'the parts were merged with weights e^(LSE·log2 e), as of LSEs that were multiplied by log2 e already':
        (l) => Math.exp(l * Math.LOG2E),
      'the parts were merged with equal weights': () => 1,
    };
    for (const part of [0, 1, 2]) {
      ways[`part ${part} was left out of the merge`] = (l, split) =>
        split === part ? 0 : natural(l);
      ways[`part ${part} was counted twice in the merge`] = (l, split) =>
        (split === part ? 2 : 1) * natural(l);
    }
    const distinct = fc
      .tuple(arrayOf(3 * rows * dim, number), fc.constantFrom(0, 0.125, 0.25))
      .map(([values, more]) => ({
        splits: 3,
        rows,
        dim,
        // Of parts that are far apart, whose weights are all different.
        out: values.map((x, i) => x + 40 * Math.floor(i / (rows * dim)) ** 2),
        lse: Float64Array.from({ length: 3 * rows }, (_, i) => Math.floor(i / rows) * 0.5 + more),
      }));
    fc.assert(
      fc.property(distinct, fc.constantFrom(...Object.keys(ways)), (parts, way) => {
        const values = Float64Array.from({ length: rows * dim }, (_, i) => {
          const row = Math.floor(i / dim);
          let [total, weights] = [0, 0];
          for (const split of [0, 1, 2]) {
            const weight = ways[way](parts.lse[split * rows + row], split);
            total += weight * parts.out[split * rows * dim + i];
            weights += weight;
          }
          return round(formats.fp32, total / weights);
        });
        const given = { out: { quantity: out, format: 'fp32' as const, values }, lse: null };
        expect(judgeMerge(parts, given, parts, 'nearest')).toMatchObject({
          pass: false,
          causes: [way],
        });
      }),
      { numRuns: 60 },
    );
  });
});
