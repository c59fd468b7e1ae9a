import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { judgeOutputs, KernelBound, type KernelOutputs } from '../../src/audit/index.js';
import { listNumbers, rankCorrelation } from '../../src/audit/diagnosis/describe-damage.js';
import { diagnose, type Diagnosis } from '../../src/audit/diagnosis/index.js';
import { describePlace, everywhere } from '../../src/audit/rows/index.js';
import { runOnlineSoftmax } from '../../src/audit/diagnosis/hypotheses/online-softmax-faults.js';
import { logSumExp, softmaxRow } from '../../src/audit/diagnosis/prediction.js';
import { measureRows } from '../../src/audit/diagnosis/row-damage.js';
import { RowReader } from '../../src/audit/diagnosis/row-reader.js';
import { damageRatio } from '../../src/audit/diagnosis/row-sample.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import { quantities, problemShape, type Problem } from '../../src/problem/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem } from '../setup/problems.js';
import { decode, encode } from './damage.js';
import { runOnlineKernel } from './online-kernel.js';
import { roundingKernel } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

function problemOf(changes: Partial<Problem> = {}, sizes: Partial<Sizes> = {}): Problem {
  const wave = (seed: number) => (i: number) =>
    2 * Math.sin(seed + i * 1.7 + 0.013 * ((i * i) % 9973));
  return filledProblem({ ...usual, ...sizes }, { q: wave(1), k: wave(2), v: wave(3) }, changes);
}

interface Sizes {
  readonly heads: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly format: FormatName;
}

const usual: Sizes = { heads: 2, queries: 72, keys: 130, dim: 16, format: 'bf16' };

/** The diagnosis of outputs, whether they fail or not: the audit asks only when they do. */
function diagnosisOf(problem: Problem, outputs: KernelOutputs): Diagnosis {
  const outputFormat = outputs.out.format;
  const judged = judgeOutputs(problem, outputs, { diagnose: false });
  const { reference } = judged;
  return diagnose({
    problem,
    reference,
    outputs: judged.outputs,
    bound: new KernelBound(problem, reference, outputFormat),
  });
}

const scores = fc
  .array(fc.oneof(fc.double({ min: -30, max: 30, noNaN: true }), fc.constant(-Infinity)), {
    minLength: 1,
    maxLength: 90,
  })
  .map((list) => Float64Array.from(list));

describe('the online softmax of the hypotheses', () => {
  const laws = fc.record({
    block: fc.constantFrom(1, 4, 16, 64),
    order: fc.constantFrom('first to last' as const, 'last to first' as const),
    lag: fc.constantFrom(0, 3, 8),
  });

  it('is the softmax when nothing is wrong with it, in any blocks and order, lagging or not', () => {
    fc.assert(
      fc.property(scores, laws, (given, law) => {
        const values = new Float64Array(given.length);
        const online = runOnlineSoftmax(given, values, law);
        const plain = softmaxRow(given, values);
        expect(online.lse === plain.lse || Math.abs(online.lse - plain.lse) < 1e-12).toBe(true);
        plain.weights.forEach((w, j) => expect(online.weights[j]).toBeCloseTo(w, 12));
      }),
    );
  });

  it('keeps the row sum when O alone is not rescaled, and the reverse', () => {
    fc.assert(
      fc.property(scores, laws, (given, law) => {
        const values = new Float64Array(given.length);
        const correct = runOnlineSoftmax(given, values, law);
        const output = runOnlineSoftmax(given, values, { ...law, rescaled: 'sum' });
        expect(output.lse).toBe(correct.lse);
        // Not rescaling can only leave too much.
        output.weights.forEach((w, j) => expect(w).toBeGreaterThanOrEqual(correct.weights[j]));
        const sum = runOnlineSoftmax(given, values, { ...law, rescaled: 'output' });
        expect(sum.lse).toBeGreaterThanOrEqual(correct.lse - 1e-12);
      }),
    );
  });

  it('leaves old weights as they were when it does not rescale them', () => {
    const given = Float64Array.of(0, 5);
    const law = { block: 1, order: 'first to last' as const };
    const values = new Float64Array(2);
    const ofOld = Math.exp(-5);
    const { weights } = runOnlineSoftmax(given, values, { ...law, rescaled: 'sum' });
    expect(weights[0]).toBeCloseTo(1 / (1 + ofOld), 14);
    const both = runOnlineSoftmax(given, values, { ...law, rescaled: 'neither' });
    expect(both.weights[0]).toBeCloseTo(1 / 2, 14);
    const sum = runOnlineSoftmax(given, values, { ...law, rescaled: 'output' });
    expect([...sum.weights]).toEqual(
      [ofOld / 2, 1 / 2].map((w) => expect.closeTo(w, 14) as number),
    );
  });

  it('truncates weights downwards, by less than an ulp', () => {
    fc.assert(
      fc.property(scores, laws, (given, law) => {
        const values = new Float64Array(given.length);
        const exact = runOnlineSoftmax(given, values, law);
        const truncated = runOnlineSoftmax(given, values, {
          ...law,
          weights: 'bf16',
          rounding: 'toward-zero',
        });
        truncated.weights.forEach((w, j) => {
          expect(w).toBeLessThanOrEqual(exact.weights[j] * (1 + 1e-12));
          expect(w).toBeGreaterThanOrEqual(exact.weights[j] * (1 - 2 ** -7) - 1e-30);
        });
      }),
    );
  });
});

describe('rows read one by one', () => {
  it('have the LSE of the oracle, under every mask and grouping', () => {
    const problems = [
      problemOf(),
      problemOf({ causal: true }),
      problemOf({ window: { left: 5, right: 2 }, softcap: 3 }),
      { ...problemOf({}, { heads: 4 }), k: problemOf().k, v: problemOf().v },
    ];
    for (const problem of problems) {
      const shape = problemShape(problem);
      const {
        quantities: {
          lse: { values: lse },
        },
      } = attentionOracle(problem);
      const reader = new RowReader(problem, shape);
      lse.forEach((exact, row) => {
        const found = logSumExp(reader.scores(row));
        expect(found === exact || Math.abs(found - exact) < 1e-9).toBe(true);
      });
    }
  });
});

describe('the expected rounding error', () => {
  it.each(['bf16', 'fp16', 'e4m3'] as const)('is what a correct %s kernel makes', (format) => {
    const problem = problemOf({}, { format });
    const outputFormat = format === 'e4m3' ? 'bf16' : format;
    const { out } = roundingKernel(problem, { outputFormat, lag: () => 0.4, tile: 64 });
    const reference = attentionOracle(problem);
    const { error, noise } = measureRows({
      problem,
      reference,
      outputs: { out: { quantity: quantities[0], format: outputFormat, values: decode(out) } },
      bound: new KernelBound(problem, reference, outputFormat),
    });
    const ratios = error.map((x, row) => x / noise[row]);
    // About 1; squares over a row's columns
    // share the roundings of P, hence the spread.
    const mean = ratios.reduce((a, b) => a + b, 0) / ratios.length;
    expect(mean).toBeGreaterThan(0.25);
    expect(mean).toBeLessThan(1.5);
    expect(Math.max(...ratios)).toBeLessThan(damageRatio);
  });
});

describe('a correct output', () => {
  const lags = { none: () => 0, 'by row': (row: number) => (row * 0.37) % 8 };
  const drawnFormats = sampled(['bf16', 'fp16', 'bf16', 'fp16'] as const, 3);
  inTurn.each(sampled(Object.entries(lags), 1))('has no cause to be found: lag %s', (_, lag) => {
    // A mask and a format that TEST_SEED draws, and whether there is an LSE.
    sampled([{}, { causal: true }, { softcap: 2 }], 1).forEach((changes, i) => {
      const format = drawnFormats[i];
      const problem = problemOf(changes, { format });
      const outputs = roundingKernel(problem, { outputFormat: format, lag, tile: 64 });
      for (const given of sampled([outputs, { ...outputs, lse: null }], 1))
        expect(diagnosisOf(problem, given).id).toBe('unexplained');
    });
  });
});

describe('a diagnosis', () => {
  const problem = problemOf();
  const { queries, vDim } = problemShape(problem);
  const correct = runOnlineKernel(problem, {});
  const withValues = (change: (x: number, row: number, column: number) => number) => ({
    ...correct,
    out: encode(
      decode(correct.out).map((x, i) => change(x, Math.floor(i / vDim), i % vDim)),
      'bf16',
      correct.out.shape,
    ),
  });

  inTurn('names truncated weights apart from a smaller scale', () => {
    const truncating = (format: FormatName) => ({
      roundWeight: (p: number) => round(formats[format], p, { rounding: 'toward-zero' as const }),
    });
    const spoilt = runOnlineKernel(problem, truncating('e5m2'));
    // Truncated far more coarsely than V's format says, which nothing in the table does.
    expect(diagnosisOf(problem, spoilt).id).toBe('unexplained');
    const eight = problemOf({}, { format: 'e4m3' });
    const truncated = runOnlineKernel(eight, { ...truncating('e4m3'), offset: 8 });
    expect(diagnosisOf(eight, truncated).id).toBe('weights-truncated');
  });

  inTurn('says which head is concerned, and only then', () => {
    const half = (x: number, row: number) => (row >= queries ? x / 2 : x);
    const ofHead = diagnosisOf(problem, withValues(half));
    expect(ofHead.id).toBe('output-scale');
    expect(describePlace(ofHead.place!)).toBe('head 1');
    const ofAll = diagnosisOf(
      problem,
      withValues((x) => x / 2),
    );
    expect(ofAll.place).toEqual(everywhere);
  });

  inTurn('says which queries are concerned', () => {
    const warp = withValues((x, row) => ((row % queries) % 64 < 32 ? x / 2 : x));
    expect(describePlace(diagnosisOf(problem, warp).place!)).toBe(
      'queries 0 to 31 and 64 to 71, 80 of 144 rows',
    );
  });

  inTurn('tells a row sum from a final scale by the LSE', () => {
    const scaled = withValues((x) => x / 1.02);
    const shifted = decode(correct.lse!).map((x) => x + Math.log(1.02));
    const both = { ...scaled, lse: encode(shifted, 'fp32', correct.lse!.shape) };
    expect(diagnosisOf(problem, both)).toMatchObject({
      id: 'row-sum-scale',
      technique: 'row-sum',
    });
    expect(diagnosisOf(problem, scaled).technique).toBe('normalise');
    expect(diagnosisOf(problem, { ...scaled, lse: null })).toMatchObject({
      id: 'output-scale',
      technique: null,
      sentence: expect.stringMatching(/row sum or final scale$/) as unknown,
    });
  });

  inTurn('does not explain single elements, and says where they are', () => {
    const one = withValues((x, row, column) => (row === 40 && column === 3 ? x + 1 : x));
    const { id, evidence } = diagnosisOf(problem, one);
    expect(id).toBe('unexplained');
    expect(evidence).toEqual(
      expect.arrayContaining([
        expect.stringContaining(`1 of ${2 * queries} rows`),
        expect.stringContaining('only head 0'),
        expect.stringContaining('only query 40'),
        expect.stringContaining('only column 3'),
      ]),
    );
  });

  it('does not explain noise', () => {
    let state = 1;
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647 - 0.5;
    const noisy = withValues((x) => x + 0.2 * random());
    expect(diagnosisOf(problem, noisy).id).toBe('unexplained');
  });

  inTurn('does not explain two faults at once by one of them', () => {
    const both = runOnlineKernel(problem, {
      inSum: (key) => key % 8 !== 3,
      valueSource: (key) => (key >= 64 && key < 128 ? key - 64 : key),
    });
    expect(diagnosisOf(problem, both).id).toBe('unexplained');
  });

  inTurn('names all causes that look the same', () => {
    // One batch entry, scale 1/√d: d times too small a scale is the scale twice or 1/d.
    const twice = runOnlineKernel(problem, { score: (dot, { scale }) => dot * scale ** 2 });
    const { id, equivalents, sentence } = diagnosisOf(problem, twice);
    expect([id, ...equivalents]).toEqual(['scale-twice', 'scale-by-dimension']);
    expect(sentence).toBe(
      'the scale is applied twice or the scale is 1/d, not the one of the problem',
    );
  });

  inTurn('knows the diagonal where queries and keys differ in number', () => {
    const late = problemOf({ causal: true });
    const { queries, keys } = usual;
    const diagonal = keys - queries;
    const early = runOnlineKernel(late, { sees: (query, key) => key < query + diagonal });
    expect(diagnosisOf(late, early).id).toBe('causal-limit-early');
    const aligned = runOnlineKernel(late, { sees: (query, key) => key <= query });
    expect(diagnosisOf(late, aligned).id).toBe('mask-aligned-top-left');
  });

  it('is the sentence of the verdict', () => {
    const { verdict } = judgeOutputs(
      problem,
      withValues((x) => x / 2),
    );
    expect(verdict.sentence).toBe(`FAIL: ${verdict.diagnosis!.sentence}.`);
    expect(judgeOutputs(problem, correct).verdict.diagnosis).toBeNull();
  });
});

describe('numbers in sentences', () => {
  it.each([
    [[3], '3'],
    [[5, 3], '3 and 5'],
    [[3, 5, 9], '3, 5 and 9'],
    [[3, 4, 5, 6], '3 to 6'],
    [[1, 3, 5, 7, 9, 11], '1, 3, 5 and 3 more'],
  ])('%j is %s', (numbers, text) => expect(listNumbers(numbers)).toBe(text));

  it('rank correlation is 1 for what grows together, and blind to a constant', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.double({ noNaN: true }), { minLength: 3 }), (values) => {
        const grown = values.map((x) => Math.atan(x) * 2 + 1);
        if (new Set(grown).size < values.length) return;
        expect(rankCorrelation(values, grown)).toBeCloseTo(1, 12);
        expect(
          rankCorrelation(
            values,
            values.map((x) => -x),
          ),
        ).toBeCloseTo(-1, 12);
        expect(
          rankCorrelation(
            values,
            values.map(() => 4),
          ),
        ).toBe(0);
      }),
    );
  });
});
