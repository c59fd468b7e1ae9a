import { describe, expect, it } from 'vitest';
import { bestAgreements, isAccepted } from '../../../src/audit/diagnosis/acceptance.js';
import { nearestCandidates } from '../../../src/audit/diagnosis/nearest-candidates.js';
import { lseFits, LseSums, SlopeSums } from '../../../src/audit/diagnosis/agreement-sums.js';
import type { HypothesisContext, SampleRow } from '../../../src/audit/diagnosis/hypothesis.js';
import type { Agreement } from '../../../src/audit/diagnosis/measure-agreement.js';
import {
  explains,
  measureAgreement,
  misfitOf,
} from '../../../src/audit/diagnosis/measure-agreement.js';
import type { RowPrediction } from '../../../src/audit/diagnosis/prediction.js';

const vDim = 4;
const filled = (x: number) => new Float64Array(vDim).fill(x);

/** A row whose exact output is 1 everywhere, and whose roundings have a variance of 1 in all. */
function rowOf(given: Partial<SampleRow> & { readonly row?: number } = {}): SampleRow {
  const { row = 0 } = given;
  const correct = { out: filled(1), noise: 1, limit: filled(2), lse: 0 };
  const bound = { keys: 4, lse: 0.5, weightRounding: 2 ** -9 } as SampleRow['bound'];
  return {
    row,
    head: Math.floor(row / 64),
    query: row % 64,
    vDim,
    bound,
    elsewhere: { ...bound, lse: 3 },
    observed: filled(3 + row / 1024),
    observedLse: null,
    correct,
    magnitude: 1e6,
    lseNoise: 0.25,
    damaged: true,
    ...given,
  } as SampleRow;
}

function contextOf(sample: readonly SampleRow[], of: Partial<HypothesisContext> = {}) {
  const shape = { heads: 4, keys: 4, vDim } as HypothesisContext['shape'];
  return { sample, shape, onlyLse: false, pooled: false, ...of } as HypothesisContext;
}

/** What is said of rows that a hypothesis explains wholly. */
function agreementOf(damaged: readonly SampleRow[], of: Partial<Agreement> = {}): Agreement {
  const rows = damaged.length;
  return {
    hypothesis: { id: 'cause', technique: null, statement: 'a cause', predict: () => null },
    rows,
    explained: rows,
    distinct: rows,
    misfit: 1,
    correctMisfit: 16,
    share: 0.9,
    slope: { value: 1, standardError: 0.01, energy: 1000, dispersion: 1, alike: 0 },
    residuals: {
      squares: new Float64Array(rows),
      noise: new Float64Array(rows).fill(1),
      lse: new Float64Array(rows),
    },
    lse: { rows: 0, fitting: 0, fittingCorrect: 0, misfit: 0, error: 0, correctError: 0 },
    spared: [],
    complete: true,
    ...of,
  };
}

const damagedRows = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => rowOf({ row: first + i }));

describe('sums over the rows of a hypothesis', () => {
  it('regress the error on what is predicted, row by row in units of its rounding', () => {
    const sums = new SlopeSums();
    expect(sums.slope()).toEqual({
      value: 1,
      standardError: Infinity,
      energy: 0,
      dispersion: 0,
      alike: 0,
    });
    const [d, e] = [
      [0.5, -1],
      [2, 0.25],
    ].map(([a, b]) => Float64Array.of(a, b, a * b, 1));
    const sound = Float64Array.of(1, -2, 3, 4);
    const rows = [d, e].map((shift, i) => {
      const observed = sound.map((x, c) => x + (0.7 + 0.2 * i) * shift[c] + 0.1 * (c % 2));
      const row = rowOf({ observed, correct: { ...rowOf().correct, noise: 1 + i } });
      const prediction = {
        out: sound.map((x, c) => x + shift[c]),
        noise: 1.5,
        limit: sound,
        lse: 0,
      };
      sums.add(row, prediction, sound);
      const variance = Math.max(1.5, 1 + i) / 4;
      const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, x, c) => sum + x * b[c], 0);
      return {
        cross:
          dot(
            shift,
            observed.map((x, c) => x - sound[c]),
          ) / variance,
        square: dot(shift, shift) / variance,
        alike: (2 ** -9 * Math.abs(dot(shift, sound))) / variance,
      };
    });
    const energy = rows[0].square + rows[1].square;
    const value = (rows[0].cross + rows[1].cross) / energy;
    const off = rows.map(({ cross, square }) => cross - value * square);
    const slope = sums.slope();
    expect(slope.energy).toBeCloseTo(energy, 12);
    expect(slope.value).toBeCloseTo(value, 12);
    expect(slope.alike).toBeCloseTo((rows[0].alike + rows[1].alike) / energy, 12);
    const spread = Math.hypot(...off);
    expect(slope.standardError).toBeCloseTo(Math.max(spread, Math.sqrt(energy)) / energy, 12);
    expect(slope.dispersion).toBeCloseTo(
      off.reduce((sum, x, i) => sum + x ** 2 / rows[i].square, 0) / 2,
      12,
    );
  });

  it('compare an LSE with what is predicted and with the correct one', () => {
    const sums = new LseSums();
    expect(sums.result()).toEqual({
      rows: 0,
      fitting: 0,
      fittingCorrect: 0,
      misfit: 0,
      error: 0,
      correctError: 0,
    });
    expect(sums.add(rowOf({ observedLse: null }), 1)).toBe(0);
    expect(sums.add(rowOf({ observedLse: 1 }), NaN)).toBe(0);
    expect(sums.add(rowOf({ observedLse: 0.75 }), 0.5)).toBe(1);
    expect(sums.add(rowOf({ observedLse: -0.25 }), 0.5)).toBe(9);
    expect(sums.add(rowOf({ observedLse: 9 }), 0)).toBe(400);
    expect(sums.add(rowOf({ observedLse: -Infinity }), -Infinity)).toBe(0);
    const { rows, fitting, fittingCorrect, misfit, error, correctError } = sums.result();
    expect([rows, fitting, fittingCorrect]).toEqual([4, 2, 1]);
    expect(misfit).toBe(410 / 4);
    expect(error).toBeCloseTo(Math.sqrt((0.25 ** 2 + 0.75 ** 2 + 1) / 4), 12);
    expect(correctError).toBeCloseTo(Math.sqrt((0.75 ** 2 + 0.25 ** 2 + 1 + 1) / 4), 12);
  });

  it('allow an LSE its bound, of a row without keys that of one with some', () => {
    const fits = (observedLse: number | null, predicted: number, keys = 4) =>
      lseFits(rowOf({ observedLse, bound: { ...rowOf().bound, keys } }), predicted);
    expect(fits(8.5, 8)).toBe(true);
    expect(fits(8.5 + 2 ** -19, 8)).toBe(true);
    expect(fits(8.5 + 2 ** -18, 8)).toBe(false);
    expect(fits(7.5 - 2 ** -18, 8)).toBe(false);
    expect(fits(10.9, 8, 0)).toBe(true);
    expect(fits(11.1, 8, 0)).toBe(false);
    expect(fits(null, 8)).toBe(true);
    expect(fits(3, NaN)).toBe(true);
    expect(fits(-Infinity, -Infinity)).toBe(true);
    expect(fits(NaN, 0)).toBe(false);
  });
});

describe('what a prediction leaves of a row', () => {
  const prediction = (out: number, of: Partial<RowPrediction> = {}): RowPrediction => ({
    out: filled(out),
    noise: 2,
    limit: filled(4),
    lse: NaN,
    ...of,
  });

  it('is its squares relative to the noise, up to a cap', () => {
    expect(misfitOf(filled(3), prediction(2))).toBe(2);
    expect(misfitOf(filled(3), prediction(3, { noise: 0 }))).toBe(0);
    expect(misfitOf(filled(300), prediction(0))).toBe(200);
    expect(misfitOf(filled(NaN), prediction(0))).toBe(200);
    expect(misfitOf(filled(Infinity), prediction(Infinity))).toBe(0);
  });

  it('explains it within 4 times the noise and within both limits', () => {
    const row = (out: number) => rowOf({ observed: filled(out) });
    expect(explains(row(1.5), prediction(0, { noise: 2.25 }))).toBe(true);
    expect(explains(row(1.501), prediction(0, { noise: 2.25 }))).toBe(false);
    const one = (x: number) => rowOf({ observed: filled(0).fill(x, 0, 1) });
    const wide = { noise: 1000 };
    expect(explains(one(4), prediction(0, wide))).toBe(true);
    expect(explains(one(4.01), prediction(0, wide))).toBe(false);
    expect(explains(one(2), prediction(0, { ...wide, limit: filled(1) }))).toBe(true);
    expect(explains(one(2.01), prediction(0, { ...wide, limit: filled(1) }))).toBe(false);
  });

  it('is measured over the rows that err', () => {
    const sample = [
      ...[1, 2, 3, 4].map((row) => rowOf({ row, observed: filled(3) })),
      rowOf({ row: 5, observed: filled(1.25), damaged: false }),
      rowOf({ row: 6, observed: filled(3), damaged: false }),
    ];
    const hypothesis = {
      id: 'x',
      technique: null,
      statement: 'x',
      predict: (): RowPrediction => prediction(2.75, { noise: 0.5, limit: filled(1) }),
    };
    const found = measureAgreement(hypothesis, contextOf(sample));
    // (3 − 2.75)² of 4 columns is 0.25; of the correct output (3 − 1)² · 4 is 16.
    expect(found).toMatchObject({
      rows: 4,
      explained: 4,
      distinct: 1,
      misfit: 0.5,
      correctMisfit: 16,
      complete: true,
    });
    expect(found.share).toBeCloseTo(1 - 0.25 / 16, 12);
    expect([...found.residuals.squares]).toEqual([0.25, 0.25, 0.25, 0.25]);
    expect([...found.residuals.noise]).toEqual([0.5, 0.5, 0.5, 0.5]);
    // The sound row that is as it should be would have been spoilt.
    expect(found.spared.map(({ row }) => row)).toEqual([5]);
    const drowned = {
      ...hypothesis,
      predict: () => prediction(2.75, { noise: 2 ** -6 * 1e6 + 1 }),
    };
    expect(measureAgreement(drowned, contextOf(sample))).toMatchObject({ rows: 0, share: 0 });
    const infinite = { ...hypothesis, predict: () => prediction(Infinity) };
    expect(measureAgreement(infinite, contextOf(sample)).rows).toBe(0);
    const sound = { ...hypothesis, sound: () => filled(2) };
    // What the sound kernel's own roundings explain is no merit: 0.25 + (16 − 4).
    expect(measureAgreement(sound, contextOf(sample)).residuals.squares[0]).toBe(12.25);
    const wrong = {
      ...hypothesis,
      predict: () => prediction(-5, { noise: 0.5, limit: filled(1) }),
    };
    const given = measureAgreement(wrong, contextOf(damagedRows(40)));
    expect(given.complete).toBe(false);
    expect(given.spared).toEqual([]);
  });
});

describe('a cause that is named', () => {
  const many = damagedRows(40);
  const accepts = (
    of: Partial<Agreement>,
    damaged: readonly SampleRow[] = many,
    context: Partial<HypothesisContext> = {},
    sound: readonly SampleRow[] = [],
  ) => isAccepted(agreementOf(damaged, of), contextOf([...damaged, ...sound], context));
  const slope = (value: number, standardError = 0.01, alike = 0) => ({
    slope: { value, standardError, energy: 1000, dispersion: 1, alike },
  });
  const lse = (of: Partial<Agreement['lse']>) => ({
    lse: {
      rows: 40,
      fitting: 40,
      fittingCorrect: 0,
      misfit: 1,
      error: 0.01,
      correctError: 1,
      ...of,
    },
  });

  it('explains all rows but three in a hundred, clearly better than a correct output', () => {
    expect(accepts({})).toBe(true);
    expect(accepts({ complete: false })).toBe(false);
    expect(accepts({ explained: 39 })).toBe(true);
    expect(accepts({ explained: 38 })).toBe(false);
    expect(accepts({ misfit: 2.5 })).toBe(true);
    expect(accepts({ misfit: 2.6 })).toBe(false);
    expect(accepts({ correctMisfit: 1.7 })).toBe(true);
    expect(accepts({ correctMisfit: 1.6 })).toBe(false);
    expect(accepts({ share: 0.5 })).toBe(true);
    expect(accepts({ share: 0.49 })).toBe(false);
  });

  it('errs by what is predicted, not by a part or a multiple of it', () => {
    expect(accepts(slope(1.089))).toBe(true);
    expect(accepts(slope(1.091))).toBe(false);
    expect(accepts(slope(0.911))).toBe(true);
    expect(accepts(slope(0.909))).toBe(false);
    const shown = lse({});
    expect(accepts({ ...slope(1.2, 0.01, 0.12), ...shown })).toBe(true);
    expect(accepts({ ...slope(1.2, 0.01, 0.1), ...shown })).toBe(false);
    expect(accepts({ ...slope(1.33, 0.01, 9), ...shown })).toBe(true);
    expect(accepts({ ...slope(1.35, 0.01, 9), ...shown })).toBe(false);
    expect(accepts({ ...slope(1.2, 0.01, 0.12), ...lse({ fittingCorrect: 1 }) })).toBe(false);
    expect(accepts(slope(1.2, 0.01, 0.12))).toBe(false);
  });

  it('is evident where few rows err, and decided by rows that differ', () => {
    const few = damagedRows(15);
    const sound = damagedRows(16, 128).map((row) => ({ ...row, damaged: false }));
    expect(accepts({ correctMisfit: 6 }, few, {}, sound)).toBe(true);
    expect(accepts({ correctMisfit: 5.9 }, few, {}, sound)).toBe(false);
    expect(accepts({ correctMisfit: 5.9 }, few, {}, sound.slice(1))).toBe(true);
    expect(
      accepts(
        { correctMisfit: 5.9 },
        damagedRows(16),
        {},
        damagedRows(18, 128).map((row) => ({ ...row, damaged: false })),
      ),
    ).toBe(true);
    // A row gains (3 − 1)² · 4 over 1, in units of the variance of a column: 64.
    const one = [rowOf({ observed: filled(1 + Math.sqrt(40 / 16) * 1.001) })];
    const less = [rowOf({ observed: filled(1 + Math.sqrt(40 / 16) * 0.999) })];
    expect(accepts({}, one)).toBe(true);
    expect(accepts({}, less)).toBe(false);
    const alike = [one[0], one[0], one[0]];
    expect(accepts({ distinct: 1 }, alike)).toBe(true);
    expect(accepts({ distinct: 1 }, [less[0], less[0], less[0]])).toBe(false);
  });

  it('gives the LSE, or does not speak against it', () => {
    expect(accepts(lse({ fitting: 39 }))).toBe(true);
    expect(accepts(lse({ fitting: 38 }))).toBe(false);
    expect(accepts(lse({ misfit: 9 }))).toBe(true);
    expect(accepts(lse({ misfit: 9.1 }))).toBe(false);
    expect(accepts(lse({ error: 0.3 }))).toBe(true);
    expect(accepts(lse({ error: 0.31 }))).toBe(false);
    expect(accepts(lse({ fittingCorrect: 40, error: 1.05 }))).toBe(true);
    expect(accepts(lse({ fittingCorrect: 40, error: 1.051 }))).toBe(false);
  });

  it('spares sound rows of other heads or warps only', () => {
    const sound = (row: number) => [rowOf({ row, damaged: false })];
    const with_ = (row: number, of: Partial<Agreement['hypothesis']> = {}, damaged = many) =>
      accepts(
        { spared: sound(row), hypothesis: { ...agreementOf([]).hypothesis, ...of } },
        damaged,
      );
    expect(with_(70)).toBe(true);
    expect(with_(45)).toBe(true);
    expect(with_(5)).toBe(false);
    expect(with_(5, { local: true })).toBe(true);
    expect(with_(70, { ofAll: true })).toBe(false);
    expect(with_(70, { ofHeads: true })).toBe(true);
    expect(with_(45, { ofHeads: true })).toBe(false);
    expect(with_(4 * 64 + 1, { ofHeads: true })).toBe(false);
    // One row of each stretch of 8 tells nothing of stretches.
    const apart = Array.from({ length: 16 }, (_, i) => rowOf({ row: 8 * i }));
    expect(with_(1, {}, apart)).toBe(false);
  });

  it('of rows that show it together gains from many of them', () => {
    const pooled = { pooled: true };
    expect(accepts({}, many, pooled)).toBe(true);
    expect(accepts({ distinct: 15 }, many, pooled)).toBe(false);
    expect(accepts({ rows: 38 }, many, pooled)).toBe(false);
    expect(accepts({ explained: 38 }, many, pooled)).toBe(false);
    expect(accepts({ misfit: 2.6 }, many, pooled)).toBe(false);
    expect(accepts(slope(1.139), many, pooled)).toBe(true);
    expect(accepts(slope(1.141), many, pooled)).toBe(false);
    expect(accepts(slope(1, 0.1), many, pooled)).toBe(true);
    expect(accepts(slope(1, 0.11), many, pooled)).toBe(false);
    const { slope: usual } = agreementOf(many);
    expect(accepts({ slope: { ...usual, dispersion: 6 } }, many, pooled)).toBe(true);
    expect(accepts({ slope: { ...usual, dispersion: 6.1 } }, many, pooled)).toBe(false);
  });

  it('of an LSE alone is one that no correct kernel gives', () => {
    const only = { onlyLse: true };
    const of = (energy: number, value = 1, fitted = false, alike = 0): Partial<Agreement> => ({
      ...lse({}),
      slope: { value, standardError: 0.01, energy, dispersion: 1, alike },
      hypothesis: { ...agreementOf([]).hypothesis, ...(fitted ? { fitted } : {}) },
    });
    expect(accepts(of(0, 5), many, only)).toBe(true);
    expect(accepts(of(39, 5), many, only)).toBe(true);
    expect(accepts(of(40, 5), many, only)).toBe(false);
    expect(accepts(of(40, 1.13), many, only)).toBe(true);
    expect(accepts(of(40, 1.2, false, 0.1), many, only)).toBe(true);
    expect(accepts(of(160, 1.2, true, 0.1), many, only)).toBe(false);
    expect(accepts(of(160, 1, true), many, only)).toBe(true);
    expect(accepts(of(159, 1, true), many, only)).toBe(false);
    expect(accepts({ ...of(0), explained: 38 }, many, only)).toBe(false);
    expect(accepts({ ...of(0), ...lse({ fittingCorrect: 40 }) }, many, only)).toBe(false);
  });
});

describe('causes beside one another', () => {
  const many = damagedRows(20);
  const named = (id: string, of: Partial<Agreement> = {}, hypothesis = {}) =>
    agreementOf(many, { ...of, hypothesis: { ...agreementOf([]).hypothesis, id, ...hypothesis } });
  /** Residuals whose cost over all rows is so much. */
  const costing = (cost: number) => ({
    residuals: {
      squares: new Float64Array(20).fill(cost / 20 / vDim),
      noise: new Float64Array(20).fill(1),
      lse: new Float64Array(20),
    },
  });
  const best = (all: Agreement[], of: Partial<HypothesisContext> = {}) =>
    bestAgreements(all, contextOf(many, of)).map(({ hypothesis }) => hypothesis.id);

  it('are equally good within a decisive gain', () => {
    expect(best([])).toEqual([]);
    expect(best([named('a', costing(0)), named('b', costing(39))])).toEqual(['a', 'b']);
    expect(best([named('a', costing(0)), named('b', costing(41))])).toEqual(['a']);
    expect(best([named('a', costing(39)), named('b', costing(0))])).toEqual(['b', 'a']);
    expect(best([named('a', costing(39)), named('b', costing(0))], { onlyLse: true })).toEqual([
      'a',
      'b',
    ]);
    const twice = { distinct: 10 };
    expect(
      best([named('a', { ...costing(0), ...twice }), named('b', { ...costing(79), ...twice })]),
    ).toEqual(['a', 'b']);
    const far = [named('a', costing(1000)), named('b', costing(1059))];
    expect(best(far)).toEqual(['a', 'b']);
    expect(best([far[0], named('b', costing(1061))])).toEqual(['a']);
  });

  it('are none that is fitted where one that is not is as good', () => {
    const adjusted = { adjusted: true };
    expect(best([named('a', costing(0), adjusted), named('b', costing(39))])).toEqual(['b']);
    expect(best([named('a', costing(0), adjusted), named('b', costing(119))])).toEqual(['a', 'b']);
    expect(best([named('a', costing(0), adjusted), named('b', costing(121))])).toEqual(['a']);
    expect(best([named('a', costing(39), adjusted), named('b', costing(0))])).toEqual(['b']);
    const lseOf = (cost: number) => ({
      residuals: { ...costing(0).residuals, lse: new Float64Array(20).fill(cost / 20) },
    });
    expect(best([named('a', lseOf(0)), named('b', lseOf(41))])).toEqual(['a']);
  });

  it('are told apart by the sound rows that they spare, and by the LSE', () => {
    expect(best([named('a', { spared: [many[0]] }), named('b')])).toEqual(['b']);
    const off = (error: number) => ({ lse: { ...agreementOf(many).lse, error } });
    expect(best([named('a', off(1)), named('b', off(2))])).toEqual(['a', 'b']);
    expect(best([named('a', off(1)), named('b', off(2.1))])).toEqual(['a']);
    expect(best([named('a', off(0)), named('b', off(1e-6))])).toEqual(['a', 'b']);
  });

  it('come near by their share of the error, one of a kind, three at most', () => {
    const shares = { a: 0.3, b: 0.5, c: 0.09, d: 0.1, e: 1.5 };
    const all = Object.entries(shares).map(([id, share]) => named(id, { share }));
    expect(nearestCandidates(all)).toEqual([
      { id: 'e', sentence: 'a cause', explained: 1 },
      { id: 'b', sentence: 'a cause', explained: 0.5 },
      { id: 'a', sentence: 'a cause', explained: 0.3 },
    ]);
    const ids = (some: Agreement[]) => nearestCandidates(some).map(({ id }) => id);
    expect(ids([all[2], all[3]])).toEqual(['d']);
    expect(ids([named('a', { share: 0.4, rows: 0 }), named('b', {}, { fitted: true })])).toEqual(
      [],
    );
    expect(ids([named('a', { share: 0.4 }), named('a', { share: 0.7 })])).toEqual(['a']);
  });
});
