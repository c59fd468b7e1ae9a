import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFinish, noErrors } from '../../../../src/audit/gradients/bounds/finish-gradient.js';
import { techniquePlaces } from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import {
  emptyGradientBound,
  type GradientTechniqueBound,
} from '../../../../src/audit/gradients/bounds/group-bounds.js';
import {
  anyGradientPremises,
  type GradientPremises,
} from '../../../../src/audit/gradients/bounds/index.js';
import {
  operandRounding,
  pairArithmetic,
  sumErrors,
  type PairArithmetic,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import {
  createScoreSharer,
  emptyScoreShare,
} from '../../../../src/audit/gradients/bounds/score-shares.js';
import { createSinkBound } from '../../../../src/audit/gradients/bounds/sink-bound.js';
import { createPairTile } from '../../../../src/audit/gradients/bounds/pairs/pair-tile.js';
import type { RowErrors } from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import {
  decodeTensor,
  formats,
  unitRoundoff,
  type FormatName,
} from '../../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { filledProblem, pseudorandom, tensor } from '../../../setup/problems.js';
import { coarseRows, drawFrom, expectAlike } from './random-pairs.js';

const sizes = { batch: 2, heads: 3, queries: 4, keys: 5, dim: 3 } as const;
const heads = sizes.batch * sizes.heads;

/** Settings by which kernels differ in dSink. */
interface Kernel {
  readonly input: FormatName;
  readonly output: FormatName;
  readonly delta: GradientPremises['delta'];
  readonly sinkTerms: GradientPremises['sinkTerms'];
  readonly softcap: number | null;
}

const kernels: fc.Arbitrary<Kernel> = fc.record({
  input: fc.constantFrom('bf16', 'fp16', 'fp32', 'fp64'),
  output: fc.constantFrom('bf16', 'fp32', 'fp64'),
  delta: fc.constantFrom('any', 'stored-output', 'weights'),
  sinkTerms: fc.constantFrom('any', 'fp64', 'fp32', 'bf16', 'e4m3'),
  softcap: fc.constantFrom(null, 4),
});

/** The format that P and dS of a sink are written in: that of the inputs, or that of their 32 bits; none in a fused kernel. */
function formatOfTerms({ input, output, delta, sinkTerms }: Kernel): FormatName | null {
  if (sinkTerms !== 'any') return sinkTerms;
  if (delta === 'stored-output') return null;
  return input === 'fp64' && output !== 'fp64' ? 'fp32' : input;
}

/** Sums over the rows of a head, in all batch entries. */
interface Sums {
  pairs: number;
  pairVariance: number;
  known: number;
  magnitude: number;
  systematic: number;
  shift: number;
  ofRow: number;
}

interface Added {
  readonly head: number;
  readonly row: RowErrors;
  readonly alike: { readonly scores: number; readonly products: number };
}

/** Theorem 20: the sink is a key of value 0 whose score, without softcap and scale, is the logit. */
function defined(
  problem: Problem,
  premises: GradientPremises,
  kernel: Kernel,
  arithmetic: PairArithmetic,
  added: readonly Added[],
  exact: Parameters<ReturnType<typeof createSinkBound>['finish']>[0],
) {
  const terms = formatOfTerms(kernel);
  const isWritten = terms !== null && unitRoundoff(formats[terms]) > premises.elementwise;
  const rounding = operandRounding(isWritten ? terms : 'fp64', premises.elementwise, [], 1);
  const own = {
    ...arithmetic,
    softcap: null,
    weights: rounding,
    ds: rounding,
    weightRounding: isWritten ? unitRoundoff(formats[terms]) : 0,
  };
  const logits = decodeTensor(problem.sink!.logits);
  const empty = (): Sums => ({
    pairs: 0,
    pairVariance: 0,
    known: 0,
    magnitude: 0,
    systematic: 0,
    shift: 0,
    ofRow: 0,
  });
  const sums = Array.from({ length: sizes.heads }, empty);
  const share = emptyScoreShare();
  const shareOf = createScoreSharer(own);
  const tile = createPairTile(own, { hasPartials: false, hasAddends: true, hasFactors: false });
  tile.setRanges([[{ begin: 0, end: 1 }]]);
  let most = 1;
  for (const { head, row, alike } of added) {
    const logit = logits[head % sizes.heads];
    // e^-∞ is an exact 0.
    if (logit === -Infinity) continue;
    tile.known.addend!.fill(logit, 0, 1);
    tile.known.addendSize!.fill(Math.abs(logit), 0, 1);
    tile.setRows([row]);
    tile.weigh();
    shareOf(tile.weighed, 0, row, alike, share);
    const sum = sums[head % sizes.heads];
    sum.pairs += share.worst;
    sum.pairVariance += share.variance;
    for (const name of ['known', 'magnitude', 'systematic', 'shift', 'ofRow'] as const)
      sum[name] += share[name];
    most = Math.max(most, Math.min(alike.scores, alike.products));
  }
  const bound = emptyGradientBound(1, sizes.heads, 0);
  const terms32 = sizes.batch * sizes.queries;
  const finish = createFinish(own, 'fp32', { sum: sumErrors(terms32, premises), growth: 1 });
  const apart = sums.map(({ ofRow, ...sum }, at) => {
    const floor = sum.pairs > 0 ? 3 * terms32 * premises.underflow : 0;
    const errors = noErrors({ knownOf: techniquePlaces.dsRound, alike: most });
    finish.element(bound, 0, at, exact, Object.assign(errors, { ...sum, floor }));
    return Math.sqrt(Math.max(0, bound.deviation[at] ** 2 - ofRow));
  });
  return { ...bound, apart: Float64Array.from(apart) };
}

/** A problem with sinks, and rows of all heads that add to their gradient. */
function sinkCase(kernel: Kernel, seed: number, hidden: number) {
  const draw = drawFrom(seed);
  const logits = tensor('fp32', [sizes.heads], (head) =>
    head === hidden ? -Infinity : draw.between(-3, 3),
  );
  const { input: format, softcap } = kernel;
  const problem: Problem = {
    ...filledProblem({ ...sizes, format }, pseudorandom(seed)),
    softcap,
    sink: { logits, inLse: true },
  };
  const premises = {
    ...anyGradientPremises(problem, kernel.output),
    delta: kernel.delta,
    sinkTerms: kernel.sinkTerms,
  };
  const shape = problemShape(problem);
  const arithmetic = pairArithmetic(problem, shape, premises);
  const added = coarseRows(draw, heads * sizes.queries).map((row, i) => ({
    head: Math.floor(i / sizes.queries),
    row,
    alike: { scores: 1 + draw.count(3), products: 1 + draw.count(3) },
  }));
  const numbers = (make: () => number) => Float64Array.from({ length: sizes.heads }, make);
  const exact = {
    values: numbers(() => draw.between(-2, 2)),
    radius: numbers(() => 2 ** -40 * draw.between(0, 1)),
    magnitude: numbers(() => 3),
  };
  const start = () =>
    createSinkBound(problem, problem.sink!.logits, shape, { premises, arithmetic }, 'fp32');
  return { problem, premises, arithmetic, added, exact, start };
}

describe('dSink is bounded as the sum over rows of a key of value 0 whose score is the sink', () => {
  it('whatever rounds its terms, in every head over all batch entries', () => {
    fc.assert(
      fc.property(kernels, fc.nat(1e6), fc.nat(sizes.heads), (kernel, seed, hidden) => {
        const made = sinkCase(kernel, seed, hidden);
        const { problem, premises, arithmetic, added, exact, start } = made;
        const bound = start();
        for (const { head, row, alike } of added) bound.add(head, row, alike);
        const found = bound.finish(exact);
        const wanted = defined(problem, premises, kernel, arithmetic, added, exact);
        const names = ['total', 'systematic', 'deviation', 'known', 'shift', 'operands'] as const;
        for (const name of [...names, 'apart'] as const)
          found[name]!.forEach((x, at) => {
            expectAlike(x, wanted[name][at], `${name} of ${at}`);
          });
      }),
      { numRuns: 40 },
    );
  });

  it('and not at all in heads of which a row is not known', () => {
    fc.assert(
      fc.property(kernels, fc.nat(1e6), fc.nat(heads - 1), (kernel, seed, unknown) => {
        const { added, exact, start } = sinkCase(kernel, seed, sizes.heads);
        const bound = start();
        for (const { head, row, alike } of added) bound.add(head, row, alike);
        bound.giveUp(unknown);
        const { total }: GradientTechniqueBound = bound.finish(exact);
        expect([...total].map((x) => x === Infinity)).toEqual(
          [0, 1, 2].map((head) => head === unknown % sizes.heads),
        );
      }),
      { numRuns: 20 },
    );
  });

  it('and by no more than its own rounding where the sink is −∞', () => {
    const { added, start } = sinkCase(
      { input: 'bf16', output: 'bf16', delta: 'any', sinkTerms: 'any', softcap: null },
      3,
      1,
    );
    const bound = start();
    for (const { head, row, alike } of added) bound.add(head, row, alike);
    const zeros = () => new Float64Array(3);
    const { total } = bound.finish({ values: zeros(), radius: zeros(), magnitude: zeros() });
    expect(total[1]).toBe(0);
    expect(Math.min(total[0], total[2])).toBeGreaterThan(0);
  });
});
