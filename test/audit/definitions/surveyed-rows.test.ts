import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle, forEachWeightTile } from '../../../oracles/index.js';
import { createRowStatistics } from '../../../src/audit/row-statistics.js';
import { fineGroups, numberUnits, surveyRows } from '../../../src/audit/structure/survey-rows.js';
import { decodeTensor, formats } from '../../../src/formats/index.js';
import { sequencesOf, filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import { Textbook } from '../hypotheses/textbook.js';

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

/** Of the queries of the last, one sees no key. */
const sequences = sequencesOf([
  [3, 28],
  [2, 51],
  [2, 1],
]);
const sequenceOf = (query: number) => sequences[query < 3 ? 0 : query < 5 ? 1 : 2];

/** Problems whose rows have many keys, some alike, or none; with a sink or without. */
const drawn = fc.record({
  seed: fc.integer({ min: 1, max: 2 ** 20 }),
  hasSink: fc.boolean(),
  isPacked: fc.boolean(),
  /** Scores of few different sizes make weights that round alike. */
  isCoarse: fc.boolean(),
});

function made({
  seed,
  hasSink,
  isPacked,
  isCoarse,
}: typeof drawn extends fc.Arbitrary<infer T> ? T : never) {
  const random = pseudorandom(seed);
  const one = () => (isCoarse ? Math.round(1.5 * random()) : 3 * random());
  const frame = { batch: isPacked ? 1 : 2, heads: 2, queries: 7, keys: 80, dim: 2 };
  const problem = filledProblem({ ...frame, format: 'fp32' }, one, {
    scale: 1,
    causal: true,
    ...(hasSink && { sink: { logits: tensor('fp32', [2], () => 2 * random()), inLse: true } }),
    ...(isPacked && { sequences }),
  });
  const book = new Textbook(problem);
  const sees = ({ query, key }: { query: number; key: number }) => {
    if (!isPacked) return book.sees({ query, key });
    const { firstQuery, queries, firstKey, keys } = sequenceOf(query);
    const last = firstKey + keys - queries + query - firstQuery;
    return key >= firstKey && key <= last;
  };
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const rows = Array.from({ length: frame.batch * 14 }, (_, row) => {
    const scores = [...book.scores(row, { sees })];
    const sink = sinks?.[Math.floor(row / 7) % 2] ?? -Infinity;
    const seen = scores.filter((x) => x > -Infinity);
    const total = sum(seen.map((x) => Math.exp(x))) + Math.exp(sink);
    return {
      scores,
      seen: seen.length,
      sink: Math.exp(sink) / total,
      weights: scores.map((x) => (x === -Infinity ? 0 : Math.exp(x) / total)),
    };
  });
  return { problem, reference: attentionOracle(problem), rows };
}

describe('the rows of a problem', () => {
  it('have their heaviest key, Σ w², and are clustered where few weights hold most', () => {
    fc.assert(
      fc.property(drawn, (of) => {
        const { problem, reference, rows } = made(of);
        const found = surveyRows(problem, reference, 'bf16');
        const groups = fineGroups('bf16');
        rows.forEach(({ weights, seen }, row) => {
          const most = Math.max(...weights);
          const key = found.heaviest[row];
          if (seen === 0) expect(key).toBe(-1);
          else expect(weights[key]).toBeGreaterThanOrEqual(most * (1 - 1e-12));
          const squares = sum(weights.map((w) => w * w));
          expect(found.squares[row]).toBeCloseTo(squares, 12);
          const byGroup = new Map<number, number>();
          for (const w of weights.filter((x) => x > 0)) {
            const group = groups.group(w / most);
            byGroup.set(group, (byGroup.get(group) ?? 0) + w);
          }
          const alike = sum([...byGroup.values()].map((w) => w * w));
          const mass = sum(weights);
          const [atTwice, atSixteen] = [alike / (2 * squares), (16 * alike) / mass ** 2];
          // Groups may meet in a table, and roundings decide between what is next to a limit.
          const isSure = [atTwice, atSixteen].every((x) => Math.abs(x - 1) > 0.1);
          if (seen === 0) expect(found.clustered[row]).toBe(1);
          else if (isSure)
            expect(found.clustered[row], `row ${row}`).toBe(atTwice > 1 && atSixteen > 1 ? 1 : 0);
        });
      }),
      { numRuns: 12 },
    );
  });

  it('have weights that are told apart where a format does, and four times as finely', () => {
    for (const format of ['bf16', 'fp16', 'e4m3', 'e5m2'] as const) {
      const groups = fineGroups(format);
      const step = 2 ** -Math.min(formats[format].precision + 1, 13);
      for (const exponent of [-39, -7, -1])
        for (const at of [1, 1 + 5 * step, 2 - step]) {
          const group = groups.group(at * 2 ** exponent);
          expect(groups.group((at + 0.999 * step) * 2 ** exponent)).toBe(group);
          expect(groups.group((at + step) * 2 ** exponent)).toBe(group + 1);
        }
      // Below 2^-40 none are.
      expect(groups.group(2 ** -50)).toBe(groups.group(2 ** -41));
    }
  });

  it('share a number with those that may err alike', () => {
    const { problem, reference } = made({
      seed: 3,
      hasSink: false,
      isPacked: false,
      isCoarse: false,
    });
    const { clustered } = surveyRows(problem, reference, 'bf16');
    const all = clustered.map(() => 1);
    const { unit, isShared } = numberUnits(reference, all, 'bf16');
    // All clustered rows of a head are one.
    expect(new Set(unit).size).toBe(4);
    expect([...isShared]).toEqual(Array(28).fill(1));
    const apart = numberUnits(
      reference,
      all.map((_, row) => (row % 7 < 2 ? 1 : 0)),
      'bf16',
    );
    expect(new Set(apart.unit).size).toBe(4 * 6);
    expect([...apart.isShared]).toEqual(
      Array.from({ length: 28 }, (_, row) => (row % 7 < 2 ? 1 : 0)),
    );
  });

  it('have an entropy, visible keys, and the lag of a maximum that skips rescales', () => {
    fc.assert(
      fc.property(
        drawn,
        fc.constantFrom(16, 64),
        fc.constantFrom(0, 1, 8),
        (of, blockKeys, threshold) => {
          const { problem, reference, rows } = made(of);
          const rule = { kind: 'online', blockKeys, threshold, offset: 0 } as const;
          const { visitor, statistics } = createRowStatistics(problem, reference, rule);
          forEachWeightTile(problem, reference, visitor);
          expect(statistics.lag === null).toBe(threshold === 0);
          rows.forEach(({ scores, weights, seen, sink }, row) => {
            expect(statistics.visibleKeys[row]).toBe(seen);
            if (seen === 0) {
              expect(statistics.entropy[row]).toBeNaN();
              expect(statistics.lag?.[row] ?? NaN).toBeNaN();
              return;
            }
            const all = [...weights, sink].filter((w) => w > 0);
            expect(statistics.entropy[row]).toBeCloseTo(sum(all.map((w) => -w * Math.log2(w))), 10);
            if (statistics.lag === null) return;
            // From the last block of the row's sequence back; it moves where it would grow by more than the threshold.
            const { firstKey, keys } = of.isPacked
              ? sequenceOf(row % 7)
              : { firstKey: 0, keys: 80 };
            let maximum = -Infinity;
            const own = scores.slice(firstKey, firstKey + keys).map((x) => x * Math.LOG2E);
            for (let at = Math.ceil(own.length / blockKeys) - 1; at >= 0; at--) {
              const largest = Math.max(...own.slice(at * blockKeys, (at + 1) * blockKeys));
              if (largest - maximum > threshold) maximum = largest;
            }
            const lag = Math.max(...own) - maximum;
            if (Math.abs(lag - threshold) > 1e-6)
              expect(statistics.lag[row], `row ${row}`).toBeCloseTo(lag, 9);
          });
          const none = createRowStatistics(problem, reference, null).statistics;
          expect(none.lag).toBeNull();
        },
      ),
      { numRuns: 12 },
    );
  });
});
