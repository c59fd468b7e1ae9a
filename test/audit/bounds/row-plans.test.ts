import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { followMaximum, planRows, type RowPlan } from '../../../src/audit/bounds/row-plan.js';
import { commonExponentError, largestExponentError } from '../../../src/audit/bounds/scores.js';
import { rescaleFactorError } from '../../../src/audit/bounds/sums.js';
import type { WeightRounding } from '../../../src/audit/bounds/weights.js';

const u32 = 2 ** -24;
/** 2^x − 1. */
const growth = (x: number) => Math.expm1(Math.LN2 * x);
const exponent = fc.integer({ min: -24, max: 24 });
/** Some are next to a distance of 8, within the roundings of a comparison and beyond. */
const nearly = fc.constantFrom(0, 0, 2 ** -20, -(2 ** -20), 2 ** -18, -(2 ** -18));
const maximumOf = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(exponent, nearly).map(([x, off]) => x + off) },
  { weight: 1, arbitrary: fc.constant(-Infinity) },
);

/** What a maximum in use may be after each block: of one row. */
interface Step {
  readonly low: number;
  readonly high: number;
  readonly growth: number;
}

/** The way of one row's maximum, by cases: it surely stays, surely moves, or either. */
function wayOf(blocks: readonly number[], off: number, threshold: number): Step[] {
  // A comparison of fp32 numbers may go the other way when they are this close.
  const [surelyNot, surely] = [threshold * (1 - 4 * u32), threshold * (1 + 4 * u32)];
  let now: Step = { low: -Infinity, high: -Infinity, growth: 0 };
  return blocks.map((own) => {
    const [low, high] = [own - off, own + off];
    const most = high - now.low;
    const least = low - now.high;
    if (own === -Infinity) now = { ...now, growth: 0 };
    else if (now.low === -Infinity) now = { low, high, growth: 0 };
    else if (most <= surelyNot || most <= 0) now = { ...now, growth: 0 };
    else if (threshold > 0 && least <= surely)
      now = { low: now.low, high: Math.max(now.high, high), growth: most };
    else now = { low: Math.max(now.low, low), high: Math.max(now.high, high), growth: most };
    return now;
  });
}

const columns = (blocks: readonly (readonly number[])[], rows: number) =>
  Array.from({ length: blocks[0].length }, (_, b) =>
    Float64Array.from({ length: rows }, (_, i) => blocks[i][b]),
  );

/** Some rows, each with the largest exponent of every block, and how far off they are. */
const someRows = fc.integer({ min: 1, max: 5 }).chain((blocks) =>
  fc.array(
    fc.record({
      blocks: fc.array(maximumOf, { minLength: blocks, maxLength: blocks }),
      off: fc.constantFrom(0, 2 ** -21, 2 ** -4, 0.16, 0.2, 1.5),
      /** Distance of the LSE from the largest; none for a row that has none. */
      above: fc.option(fc.integer({ min: 0, max: 12 }), { freq: 8 }),
      sink: fc.oneof(fc.constant(-Infinity), exponent),
      sunken: fc.constantFrom(0, 3, 500),
    }),
    { minLength: 1, maxLength: 4 },
  ),
);

describe('the maximum in use', () => {
  it('stays, moves or does either, from block to block', () => {
    fc.assert(
      fc.property(someRows, fc.constantFrom(0, 8, 0.5), (rows, threshold) => {
        const rule = { kind: 'online', blockKeys: 64, threshold, offset: 0 } as const;
        const maxima = columns(
          rows.map(({ blocks }) => blocks),
          rows.length,
        );
        const off = Float64Array.from(rows, (row) => row.off);
        const path = followMaximum(rule, maxima, off);
        rows.forEach((row, i) =>
          expect(path.map((one) => [one.low[i], one.high[i], one.growth[i]])).toEqual(
            wayOf(row.blocks, row.off, threshold).map((one) => [one.low, one.high, one.growth]),
          ),
        );
      }),
    );
  });

  it('holds that of any kernel whose scores are as far off', () => {
    const part = fc.integer({ min: -4, max: 4 });
    fc.assert(
      fc.property(
        someRows,
        fc.constantFrom(0, 8),
        fc.array(part, { minLength: 5, maxLength: 5 }),
        ([{ blocks, off }], threshold, parts) => {
          const rule = { kind: 'online', blockKeys: 64, threshold, offset: 0 } as const;
          const path = followMaximum(rule, columns([blocks], 1), Float64Array.of(off));
          let maximum = -Infinity;
          blocks.forEach((block, b) => {
            const own = block + (off * parts[b]) / 4;
            const grows = own - maximum > threshold;
            if (grows && maximum > -Infinity)
              expect(own - maximum).toBeLessThanOrEqual(path[b].growth[0] + 1e-12);
            if (grows) maximum = own;
            expect(maximum).toBeGreaterThanOrEqual(path[b].low[0]);
            expect(maximum).toBeLessThanOrEqual(path[b].high[0]);
          });
        },
      ),
    );
  });
});

const arithmetic = {
  exponent: {
    ofDistance: 2 ** -23,
    ofScore: 2 ** -22,
    ofSoftcap: 2 ** -21,
    absolute: 2 ** -20,
    common: 2 ** -19,
  },
  exponential: { hardware: 2 ** -18 },
  finish: { normalise: 2 ** -17 },
  scaleError: 2 ** -16,
  weightFormat: 'fp16',
  weightScale: 4,
};
const roundings: fc.Arbitrary<WeightRounding> = fc.record({
  smallestNormal: fc.constant(2 ** -14),
  ulpOfOne: fc.constant(2 ** -10),
  maxFinite: fc.constantFrom(Infinity, 448, 1.5, 256, 2 ** 20),
  saturates: fc.boolean(),
  relative: fc.constant(2 ** -11),
  least: fc.constant(2 ** -25),
  isOfWeights: fc.boolean(),
});

/** The rows as a plan knows them. */
function knownOf(
  rows: readonly (typeof someRows extends fc.Arbitrary<infer T> ? T : never)[number][],
) {
  const of = (one: (row: (typeof rows)[number]) => number) => Float64Array.from(rows, one);
  const largest = (row: (typeof rows)[number]) => Math.max(...row.blocks);
  const lse = of((row) => (row.above === null ? -Infinity : largest(row) + row.above));
  return {
    uncertainty: of((row) => row.off),
    lse,
    maximum: of(largest),
    denominator: lse.map((x, i) => x + rows[i].sunken),
    sink: of((row) => row.sink),
    isSinkInLse: false,
  };
}

function near(actual: number, wanted: number, what: string): void {
  if (Object.is(actual, wanted) || actual === wanted) return;
  if (!(Math.abs(actual - wanted) <= 1e-8 * Math.abs(wanted))) expect(actual, what).toBe(wanted);
}

type OfRow = Readonly<
  Record<'origin' | 'largestMaximum' | 'finalMaximum' | 'logarithm' | 'reach' | 'overflows', number>
>;
type OfBlock = Readonly<Record<keyof RowPlan['blocks'][number], number>>;

function expectPlan(
  plan: RowPlan,
  i: number,
  wanted: { readonly row: Partial<OfRow>; readonly blocks: readonly Partial<OfBlock>[] },
): void {
  for (const [name, x] of Object.entries(wanted.row))
    near(plan[name as keyof OfRow][i], x, `${name} of row ${i}`);
  expect(plan.blocks.length).toBe(wanted.blocks.length);
  wanted.blocks.forEach((block, b) => {
    for (const [name, x] of Object.entries(block))
      near(plan.blocks[b][name as keyof OfBlock][i], x, `${name} of row ${i}, block ${b}`);
  });
}

const nothing: OfBlock = {
  shift: 0,
  gain: 0,
  uncertainty: 0,
  relative: 0,
  least: 0,
  common: 0,
  commonOfLse: 0,
  rescales: 0,
  multiplied: 0,
};

describe('the plan of a row with an online maximum', () => {
  it('follows from its way, block by block (sections 3 to 6 of docs/theory/bounds.md)', () => {
    const offsets = fc.constantFrom(0, 8, -4, 120);
    fc.assert(
      fc.property(
        someRows,
        roundings,
        fc.constantFrom(0, 8, 100),
        offsets,
        (rows, rounding, threshold, offset) => {
          const known = { ...knownOf(rows), shared: null };
          const maximum = { kind: 'online', blockKeys: 64, threshold, offset } as const;
          const of = { ...arithmetic, maximum } as unknown as KernelArithmetic;
          const maxima = columns(
            rows.map(({ blocks }) => blocks),
            rows.length,
          );
          const plan = planRows(of, rounding, known, maxima);
          rows.forEach((row, i) => {
            const way = wayOf(row.blocks, row.off, threshold);
            const last = way[way.length - 1];
            const lse = known.lse[i];
            const isEmpty = last.low === -Infinity;
            const sizes = way
              .filter(({ low }) => low > -Infinity)
              .flatMap(({ low, high }) => [Math.abs(low), Math.abs(high)]);
            const final = Math.max(Math.abs(last.low), Math.abs(last.high));
            let [reach, isOverflowing] = [0, false];
            const blocks = way.map((step, b): OfBlock => {
              if (step.low === -Infinity || !Number.isFinite(lse)) return nothing;
              const inUse = Math.max(Math.abs(step.low), Math.abs(step.high));
              const half = (step.high - step.low) / 2;
              const common = commonExponentError(of.exponent, inUse, offset);
              const ofExponent = common + largestExponentError(of.exponent, inUse);
              const uncertainty = growth(half + row.off + ofExponent + u32);
              const limit = offset + threshold + 2 * ofExponent + u32;
              // Of the kernel's own scores, none is above its maximum by more than the threshold.
              const most = offset + row.blocks[b] + row.off - step.low;
              reach = Math.max(reach, Math.min(most + ofExponent, limit));
              const isOver =
                2 ** most * (1 + uncertainty) > rounding.maxFinite &&
                2 ** limit * (1 + growth(2 * ofExponent + u32)) > rounding.maxFinite;
              isOverflowing ||= isOver && !rounding.saturates;
              const isKnown = rounding.isOfWeights && uncertainty <= 1 / 8;
              const later = way
                .slice(b + 1)
                .filter((one) => one.growth > 0)
                .map((one) => rescaleFactorError(one.growth, of.scaleError));
              return {
                shift: offset - (step.low + step.high) / 2,
                gain: 2 ** ((step.low + step.high) / 2 - offset - lse),
                uncertainty,
                relative: isKnown ? 0 : isOver ? 1 : rounding.relative,
                least: isKnown ? 0 : rounding.least * 4 ** half,
                commonOfLse: growth(common),
                // An error that all sums share cancels.
                common:
                  later.length === 0
                    ? 0
                    : growth(common + commonExponentError(of.exponent, final, offset)),
                rescales: later.reduce((sum, x) => sum + x, 0),
                multiplied: step.growth > 0 ? 1 : 0,
              };
            });
            isOverflowing ||= reach >= 127;
            expectPlan(plan, i, {
              row: {
                origin: (last.low + last.high) / 2,
                largestMaximum: isEmpty ? 0 : Math.max(...sizes),
                finalMaximum: final,
                ...(isEmpty || row.above === null
                  ? {}
                  : {
                      logarithm:
                        Math.abs(offset) +
                        Math.max(Math.abs(lse - last.low), Math.abs(lse - last.high)),
                    }),
                reach,
                overflows: isOverflowing ? 1 : 0,
              },
              blocks,
            });
            plan.blocks.forEach(({ uncertainty }, b) =>
              expect(uncertainty[i]).toBeGreaterThanOrEqual(blocks[b].uncertainty),
            );
          });
        },
      ),
    );
  });

  it('forgets maxima of which no weight is left in the end', () => {
    const maximum = { kind: 'online', blockKeys: 64, threshold: 0, offset: 0 } as const;
    const of = { ...arithmetic, maximum } as unknown as KernelArithmetic;
    const rounding = { maxFinite: Infinity, relative: 0, least: 0 } as WeightRounding;
    const one = (x: number) => Float64Array.of(x);
    const known = {
      uncertainty: one(0),
      lse: one(0),
      maximum: one(0),
      denominator: one(0),
      sink: one(-Infinity),
      isSinkInLse: false,
      shared: null,
    };
    const largest = (first: number) =>
      planRows(of, rounding, known, [one(first), one(0)]).largestMaximum[0];
    expect(largest(-1100)).toBe(1100);
    expect(largest(-1101)).toBe(0);
    expect(planRows(of, rounding, known, [])).toMatchObject({ blocks: [], origin: one(0) });
  });
});

describe('the plan of a row whose maximum is known before its first weight', () => {
  it('divides weights by the row sum or not, relative to a maximum of others or its own', () => {
    const kinds = fc.constantFrom('whole-row', 'unknown');
    fc.assert(
      fc.property(
        someRows,
        roundings,
        kinds,
        fc.option(fc.constantFrom(-130, -12, 0, 30)),
        fc.constantFrom('fp16' as const, 'bf16' as const),
        (rows, rounding, kind, common, weightFormat) => {
          const isDivided = kind === 'whole-row';
          const shared = isDivided ? null : common;
          const known = { ...knownOf(rows), shared };
          const weightScale = weightFormat === 'fp16' ? 4 : undefined;
          const changed = { ...arithmetic, weightFormat, weightScale, maximum: { kind } };
          const of = changed as unknown as KernelArithmetic;
          const maxima = columns(
            rows.map(({ blocks }) => blocks),
            rows.length,
          );
          const plan = planRows(of, rounding, known, maxima);
          rows.forEach((row, i) => {
            const [lse, largest, sink] = [known.lse[i], known.maximum[i], known.sink[i]];
            const hasWeights = Number.isFinite(lse) && Number.isFinite(largest);
            // What is sunken below 2^-400 by a sink is as good as nothing.
            const divisor = Math.min(known.denominator[i], lse + 400);
            const used = shared ?? largest;
            const origin = isDivided ? divisor : used;
            const reach =
              isDivided || shared === null ? 0 : Math.max(0, largest - shared + row.off);
            const wrong = row.off + largestExponentError(of.exponent, Math.abs(largest));
            const relative = 2 * (growth(wrong) + 2 ** -18 + 2 ** -17 + 4 * u32);
            const isKnown = isDivided && rounding.isOfWeights && relative <= 1 / 8;
            // Rounded before or after the division.
            const floor =
              2 ** (sink === -Infinity ? lse - origin : Math.min(divisor - origin, 400));
            const above = Math.max(0, sink - used);
            const ofSink = above > 0 ? Math.abs(sink) : 0;
            const block: Partial<OfBlock> = hasWeights
              ? {
                  ...nothing,
                  shift: -origin,
                  gain: 2 ** (origin - lse),
                  uncertainty: relative,
                  relative: isKnown ? 0 : rounding.relative + u32,
                  least: isKnown ? 0 : rounding.least * Math.max(1, floor),
                }
              : nothing;
            // 65504 / 4 is the largest weight in fp16, and exponentials are below 2^127.
            const most = weightFormat === 'fp16' ? Math.log2(65504 / 4) : 127;
            const isOver = reach > 0 && reach >= most;
            const ofRow = {
              origin: hasWeights ? origin : 0,
              reach: hasWeights ? reach : 0,
              overflows: hasWeights && isOver ? 1 : 0,
            };
            expectPlan(plan, i, {
              row: hasWeights
                ? {
                    ...ofRow,
                    largestMaximum: Math.max(Math.abs(largest), Math.abs(used), ofSink) + above,
                    finalMaximum: Math.max(Math.abs(used), ofSink),
                    logarithm: Math.max(Math.abs(lse - used), above > 0 ? Math.abs(lse - sink) : 0),
                  }
                : ofRow,
              blocks: row.blocks.map(() => block),
            });
          });
        },
      ),
    );
  });
});
