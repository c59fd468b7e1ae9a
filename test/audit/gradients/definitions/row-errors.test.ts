import { describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../../../oracles/index.js';
import { internalBound, KernelBound, outputRounding } from '../../../../src/audit/bounds/index.js';
import {
  anyGradientPremises,
  eagerGradientPremises,
  type GradientPremises,
  type StoredForward,
} from '../../../../src/audit/gradients/bounds/index.js';
import {
  meanRounding,
  pairArithmetic,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { createRowErrors } from '../../../../src/audit/gradients/bounds/row-errors.js';
import type { RowSums } from '../../../../src/audit/gradients/bounds/pairs/row-sums.js';
import { emptyRowSums } from './plain-sums.js';
import { premisesByFormat } from '../../../../src/audit/premises/premises.js';
import { resolvePremises } from '../../../../src/audit/premises/resolve-premises.js';
import { decodeTensor, formats, unitRoundoff } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { encode } from '../../damage.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom, expectAlike } from './random-pairs.js';
import { storedMeanOf } from './stored-mean-of.js';

const seed = (testSeed % 1_000_003) + 11;

/** What a row is judged by. */
interface Of {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
}

/** Sums that a row may have, of sizes at which every term shows. */
function drawnSums(row: number): RowSums {
  const { between } = drawFrom(seed + 31 * row);
  const sums = emptyRowSums();
  for (const name of Object.keys(sums) as (keyof RowSums)[]) sums[name] = between(0.001, 0.02);
  sums.size = between(1, 2);
  sums.alikeAdditions = row % 3;
  sums.squaredAdditions = 9 + row;
  sums.commonErrors *= -1;
  if (row === 4) sums.weightErrors = 0.7;
  if (row === 5) sums.typicalWeights = 0.6;
  if (row === 6) sums.commonWeights = -0.6;
  return sums;
}

/** λ: Theorem 4, and what is known of it once the weights' errors are. */
function weightOf(of: Of, forward: KernelBound, row: number, sums: RowSums | null) {
  const { problem, reference, premises, given } = of;
  const { elementwise } = premises;
  const [L, max] = [reference.denominator[row], reference.maximum[row]].map(Math.abs);
  const { lse } = reference.quantities;
  const isOfAll = problem.sink === undefined || problem.sink.inLse;
  const stored = given.lse !== null && isOfAll ? decodeTensor(given.lse)[row] : null;
  const kappa = stored === null ? 0 : Math.expm1(lse.values[row] - stored);
  const isKnown = stored !== null && premises.delta === 'stored-output';
  const lambda = (error: number) => Math.expm1(error + 2 * elementwise * L);
  const known = lambda(2 * lse.radius[row]);
  if (isKnown) return { weightShift: kappa, weight: known, typicalWeight: known };
  const bound = forward.row(row);
  const ofStored = Math.abs(kappa) + 4 * elementwise * L;
  const additions = (bound.keys - Math.sqrt(bound.keys)) * bound.addition;
  const typical = Math.max(
    0,
    bound.lse - bound.weight + bound.typicalWeight - premises.exponential - additions,
  );
  const norms = {
    weightShift: 0,
    weight: Math.max(lambda(bound.lse), ofStored),
    typicalWeight: Math.max(lambda(typical), ofStored),
  };
  if (sums === null || problem.sink !== undefined) return norms;
  const ofPairs = sums.weightErrors < 0.5 ? sums.weightErrors / (1 - sums.weightErrors) : Infinity;
  const { logarithm } = premisesByFormat[premises.p === 'fp64' ? 'fp64' : premises.p];
  const e = elementwise;
  const spread = {
    typical:
      sums.typicalWeights +
      sums.alikeAdditions * bound.addition +
      0.35 * logarithm +
      (e * max) / 2 +
      (e * L) / 4 +
      lse.radius[row],
    variance:
      sums.weightVariance +
      sums.squaredAdditions * bound.addition ** 2 +
      logarithm ** 2 / 3 +
      meanRounding * e ** 2 * (2 * max ** 2 + 3 * L ** 2),
  };
  const weight = Math.min(
    norms.weight,
    Math.max(ofStored, lambda(bound.lse - bound.weight + ofPairs)),
  );
  const isLarge =
    spread.typical + Math.abs(sums.commonWeights) + 8 * Math.sqrt(spread.variance) >= 0.5;
  if (isLarge) return { ...norms, weight };
  return {
    weightShift: 0,
    weight,
    typicalWeight: Math.min(norms.typicalWeight, Math.abs(kappa) + Math.expm1(spread.typical)),
    commonWeight: sums.commonWeights,
    weightVariance: spread.variance,
  };
}

/** Δ of an O that is not given: Theorem 5. */
function ofAnyOutput(
  of: Of,
  forward: KernelBound,
  row: number,
  sums: RowSums,
  dout: Float64Array,
  mean: number,
) {
  const { problem, reference, premises } = of;
  const a = pairArithmetic(problem, reference.shape, premises);
  const { out } = reference.quantities;
  const bound = forward.row(row);
  const e = premises.elementwise;
  const short = (format: GradientPremises['o']) => unitRoundoff(formats[format]) > e;
  let [worst, variance, sizes, floors, written] = [0, 0, 0, 0, 0];
  dout.forEach((given, c) => {
    const size = Math.abs(given);
    if (size === 0) return;
    const at = row * dout.length + c;
    const [O, M, radius] = [Math.abs(out.values[at]), out.magnitude[at], out.radius[at]];
    const error = internalBound(bound, out.values[at], M, 2 * M) + radius;
    const half = outputRounding(premises.o, O, error);
    worst +=
      size * (bound.accumulation * M + bound.normalisation * O + half + bound.floor + radius);
    worst += a.products.worst * size * (O + error + half);
    floors += size * bound.floor;
    sizes += size * O;
    variance +=
      size ** 2 *
      (half ** 2 / 3 + (a.overKeys.walk * ((M + O) / 2)) ** 2 + 4 * meanRounding * e ** 2 * O ** 2);
    if (short(premises.deltaProducts))
      written += outputRounding(premises.deltaProducts, size * O, size * (error + half));
  });
  const ofWeights = Math.min(
    2 * bound.weight * sums.size,
    problem.sink === undefined && sums.weightErrors < 0.5
      ? sums.scatter / (1 - sums.weightErrors)
      : Infinity,
  );
  const floor = 2 ** 16 * premises.underflow;
  worst += bound.weightRounding * sums.size + ofWeights + floor;
  if (short(premises.deltaSums))
    written += outputRounding(premises.deltaSums, mean, worst + written);
  const share = a.overKeys.toZero + a.products.toZero + e;
  const cut = (toZero: number) => (a.tellsApart ? (toZero * sizes) ** 2 / 12 : 0);
  return {
    worst: worst + written,
    typical:
      written +
      sums.typicalScatter +
      Math.abs(sums.commonScatter) +
      (a.tellsApart ? 0 : share * sizes) +
      floors +
      floor,
    common: a.tellsApart ? share : 0,
    variance:
      variance +
      cut(a.overKeys.toZero) +
      cut(a.products.toZero) +
      sums.scatterVariance +
      (a.products.walk * ((sizes + Math.abs(mean)) / 2)) ** 2 +
      (short(premises.o) ? meanRounding * bound.weightRounding ** 2 * sums.squares : 0),
  };
}

/** Δ of Σ P dP: Theorem 5. */
function ofWeights(of: Of, sums: RowSums, mean: number, lambda: ReturnType<typeof weightOf>) {
  const { problem, reference, premises } = of;
  const a = pairArithmetic(problem, reference.shape, premises);
  const e = premises.elementwise;
  const { weight, typicalWeight, commonWeight = 0, weightVariance = 0 } = { ...lambda };
  const terms = a.overKeys.worst + 4 * e + a.weightRounding;
  const floor = 2 ** 16 * premises.underflow;
  const D = Math.abs(mean);
  const partials = Math.min(
    ((sums.size + D) / 2) ** 2,
    sums.largestProduct ** 2 + sums.squares / 6,
  );
  return {
    worst: (1 + weight) * (sums.errors + terms * (sums.size + sums.errors)) + weight * D + floor,
    typical:
      sums.typical +
      Math.abs(sums.commonErrors) +
      (typicalWeight + Math.abs(commonWeight)) * D +
      (a.tellsApart ? 0 : (a.overKeys.toZero + e) * sums.size) +
      floor,
    common: a.tellsApart ? a.commonProducts + a.overKeys.toZero + e : 0,
    variance:
      sums.variance +
      weightVariance * D ** 2 +
      (meanRounding * a.weightRounding ** 2 + 4 * meanRounding * e ** 2) * sums.squares +
      a.overKeys.walk ** 2 * partials +
      (a.tellsApart ? (a.overKeys.toZero * sums.largestProduct) ** 2 / 12 : 0),
  };
}

const cases: Readonly<
  Record<
    string,
    {
      format: 'bf16' | 'fp32';
      premises?: Partial<GradientPremises>;
      isStored?: boolean;
      isEager?: boolean;
      hasSink?: boolean;
    }
  >
> = {
  'of any kernel': { format: 'bf16' },
  'of any kernel in fp32': { format: 'fp32' },
  'with a stored O': { format: 'bf16', premises: { delta: 'stored-output' }, isStored: true },
  'with a stored O in fp32': {
    format: 'fp32',
    premises: { delta: 'stored-output' },
    isStored: true,
  },
  'of either D, with a stored O': { format: 'fp32', isStored: true },
  'of its weights': { format: 'fp32', premises: { delta: 'weights' }, isStored: true },
  'of an O that is not known': { format: 'fp32', premises: { delta: 'stored-output' } },
  'of a framework': { format: 'bf16', isEager: true },
  'of a D that is written': {
    format: 'bf16',
    premises: { delta: 'stored-output', deltaProducts: 'bf16', deltaSums: 'fp16' },
  },
  'with a sink': { format: 'bf16', hasSink: true, isStored: true },
};

describe('the errors of rows are those of Theorems 4 and 5', () => {
  it.each(Object.entries(cases))('%s', (_, { format, premises, isStored, isEager, hasSink }) => {
    const random = bellShaped(seed);
    const problem = {
      ...filledProblem(
        { batch: 2, heads: 2, queries: 2, keys: 40, dim: 4, vDim: 3, format },
        random,
      ),
      ...(hasSink === true && { sink: { logits: tensor('fp32', [2], random), inLse: false } }),
    };
    const reference = attentionOracle(problem);
    const { out, lse } = reference.quantities;
    const ofStored = {
      out: encode(
        out.values.map((x) => x * 1.02),
        format,
        [2, 2, 2, 3],
      ),
      lse: encode(
        lse.values.map((x, i) => x + 0.02 * (i - 3.5)),
        'fp32',
        [2, 2, 2],
      ),
    };
    const usual = (isEager === true ? eagerGradientPremises : anyGradientPremises)(problem, format);
    const of = {
      problem,
      reference,
      premises: { ...usual, ...premises },
      given: isStored === true ? ofStored : { out: null, lse: null },
    };
    const a = pairArithmetic(problem, reference.shape, of.premises);
    const forward = new KernelBound(
      problem,
      reference,
      of.premises.o,
      resolvePremises(problem, of.premises.o, isEager === true ? { scores: 'input' } : {}),
    );
    const errors = createRowErrors(of, a);
    const isUsed = of.premises.delta === 'stored-output';
    expect(errors.needsSums).toBe(!(isUsed && isStored === true && hasSink !== true));
    for (let row = 0; row < 8; row++) {
      const mean = { value: random(), radius: 1e-4 };
      const dout = Float64Array.from([random(), row === 3 ? 0 : random(), random()]);
      const sums = drawnSums(row);
      const begun = errors.begin(row, mean);
      const norms = weightOf(of, forward, row, null);
      for (const [name, x] of Object.entries(norms))
        expectAlike(begun[name as 'weight'], x, `${name} from norms`);
      const lambda = errors.needsSums ? weightOf(of, forward, row, sums) : norms;
      const stored =
        of.given.out === null
          ? null
          : storedMeanOf(
              of.premises,
              a,
              dout,
              decodeTensor(of.given.out, row * 3, row * 3 + 3),
              mean.value,
            );
      const found = errors.finish(row, begun, sums, dout);
      const either = () => {
        const ofOutput =
          stored === null
            ? ofAnyOutput(of, forward, row, sums, dout, mean.value)
            : {
                ...stored,
                worst: stored.worst + Math.abs(stored.shift),
                typical: stored.typical + Math.abs(stored.shift),
              };
        const ofP = ofWeights(of, sums, mean.value, lambda);
        if (of.premises.delta === 'weights') return ofP;
        if (isUsed) return ofOutput;
        return {
          worst: Math.max(ofOutput.worst, ofP.worst),
          typical: Math.max(ofOutput.typical, ofP.typical),
          common: Math.max(ofOutput.common, ofP.common),
          variance: Math.max(ofOutput.variance, ofP.variance),
        };
      };
      const shift = isUsed && stored !== null ? stored.shift : 0;
      const { worst, typical, common, variance } = isUsed && stored !== null ? stored : either();
      const wanted = {
        denominator: reference.denominator[row],
        mean: mean.value,
        commonWeight: 0,
        weightVariance: 0,
        ...lambda,
        meanShift: shift,
        worstMean: mean.radius + worst,
        typicalMean: mean.radius + typical,
        commonMean: common * (mean.value + shift),
        meanVariance: variance,
      };
      for (const [name, x] of Object.entries(wanted))
        expectAlike(found[name as 'weight'], x, `${name} of row ${row}`);
    }
  });
});
