import type { AttentionReference } from '../../oracles/index.js';
import { describePlace, elementAt } from '../../src/audit/index.js';
import { problemShape } from '../../src/problem/index.js';
import { formatApart, formatNumber } from '../../src/words/index.js';
import { placeOfRow } from './compare-runs.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import { requirePromised } from './promised-problem.js';
import { exactAttention, runBounds, type RunBounds } from './within-bound.js';
import { arrangeProblem, indices, spreadChoice } from './transform-problem.js';

/** The kernel's run on some of the keys, its exact attention, and the bounds around that. */
interface Part {
  readonly run: KernelRun & { readonly lse: Float64Array };
  readonly reference: AttentionReference;
  readonly bounds: RunBounds;
}

/** Numbers combined from parts, and the most that they may differ from those of the whole. */
interface Combined {
  readonly value: number;
  readonly bound: number;
}

/** The relative error of fp64 over a whole combination, in terms of its summands, with a large margin. */
const slack = 2 ** -44;

function logSumExp(values: readonly number[]): number {
  const largest = Math.max(...values);
  return largest + Math.log(values.reduce((sum, x) => sum + Math.exp(x - largest), 0));
}

/**
 * Row by row, the parts' outputs weighted by the exponentials of their LSEs, and the LSE of these.
 *
 * With part i's exact weight w_i = exp(LSE_i − LSE), Σ w_i = 1, its LSE off by d_i, |d_i| ≤ λ_i, and
 * its output by at most b_i: the LSE put together is off by ln Σ w_i exp(d_i), which lies between
 * ±Λ, Λ = ln Σ w_i exp(λ_i), since Σ w exp(λ) · Σ w exp(−λ) ≥ 1. The weights put together are
 * w_i exp(d_i) / Σ w exp(d): off by a factor of exp(λ_i + Λ) at most. Both sets of weights sum to one, so
 * O is off by at most Σ w_i exp(λ_i + Λ) b_i + Σ w_i (exp(λ_i + Λ) − 1)|O_i − O|.
 */
class Combination {
  readonly #parts: readonly Part[];
  readonly #row: number;
  readonly #vDim: number;
  readonly #found: readonly number[];
  readonly #exact: readonly number[];
  readonly #stretch: readonly number[];
  readonly lse: Combined;

  constructor(parts: readonly Part[], row: number) {
    const exact = parts.map(({ reference }) => reference.quantities.lse.values[row]);
    const found = parts.map(({ run }) => run.lse[row]);
    const lambda = parts.map(({ bounds }) => bounds.lse[row]);
    const whole = logSumExp(exact);
    const value = logSumExp(found);
    const common = logSumExp(exact.map((lse, i) => lse - whole + lambda[i]));
    this.#parts = parts;
    this.#row = row;
    this.#vDim = parts[0].run.shape.vDim;
    this.#found = found.map((lse) => Math.exp(lse - value));
    this.#exact = exact.map((lse) => Math.exp(lse - whole));
    this.#stretch = lambda.map((own) => Math.exp(own + Math.max(common, 0)));
    this.lse = { value, bound: common + slack * (1 + Math.abs(whole)) };
  }

  element(column: number, exact: number): Combined {
    const at = this.#row * this.#vDim + column;
    let value = 0;
    let bound = 0;
    this.#parts.forEach(({ run, reference, bounds }, i) => {
      const weight = this.#exact[i];
      const stretch = this.#stretch[i];
      value += this.#found[i] * run.out[at];
      // A part so light that its weight is zero must not make 0·∞ of what is not known of it.
      if (weight > 0)
        bound +=
          weight *
          (stretch * bounds.out[at] +
            (stretch - 1) * Math.abs(reference.quantities.out.values[at] - exact) +
            slack * (Math.abs(reference.quantities.out.values[at]) + Math.abs(exact)));
    });
    return { value, bound };
  }
}

/** Number of cuts tried in two, and as many in three. */
const cutsOfEach = 12;

/**
 * The parts of the keys that a choice makes, none of them empty, each a multiple of a number of keys.
 * @throws NotApplicable for too few keys
 */
function partsOf(allKeys: number, choice: number, multiple: number): number[][] {
  const keys = allKeys / multiple;
  if (keys < 3) throw new NotApplicable('the problem has too few keys to split');
  const parts = 2 + (choice % 2);
  const which = Math.floor(choice / 2);
  const first = 1 + spreadChoice(which, cutsOfEach, keys - parts + 1);
  const second = first + Math.max(1, Math.floor((keys - first) / 2));
  const ends = parts === 2 ? [first, keys] : [first, second, keys];
  return ends.map((end, i) => {
    const begin = ends[i - 1] ?? 0;
    return indices((end - begin) * multiple, begin * multiple);
  });
}

function hasLse(run: KernelRun): run is Part['run'] {
  return run.lse !== null;
}

/**
 * The first element or LSE that differs by more than both bounds, in a sentence; null for none.
 * @throws NotApplicable where no row can be compared
 */
function difference(whole: Part, parts: readonly Part[]): string | null {
  const { run, reference, bounds } = whole;
  const { shape, out, lse } = run;
  const describe = (what: string, own: number, combined: number, limit: number) =>
    `${what} is ${formatApart(own, combined).join(' but ')} put together from the ${parts.length} parts, which begin at keys ${partStarts(parts).join(', ')}; rounding explains ± ${formatNumber(limit)}`;
  let compared = 0;
  for (let row = 0; row < lse.length; row++) {
    // Another law covers special values; LSEs do not show them.
    if (
      ![whole, ...parts].every((part) => Number.isFinite(part.reference.quantities.lse.values[row]))
    )
      continue;
    const combination = new Combination(parts, row);
    const ofLse = bounds.lse[row] + combination.lse.bound;
    if (ofLse < Infinity) compared++;
    if (Math.abs(lse[row] - combination.lse.value) > ofLse)
      return describe(
        `the LSE at ${describePlace(placeOfRow(shape, row))}`,
        lse[row],
        combination.lse.value,
        ofLse,
      );
    for (let c = 0; c < shape.vDim; c++) {
      const at = row * shape.vDim + c;
      const { value, bound } = combination.element(c, reference.quantities.out.values[at]);
      const limit = bounds.out[at] + bound;
      if (limit < Infinity) compared++;
      if (Math.abs(out[at] - value) > limit)
        return describe(`O at ${describePlace(elementAt(shape, at))}`, out[at], value, limit);
    }
  }
  if (compared === 0)
    throw new NotApplicable('no row has an exact LSE and a bound that are finite');
  return null;
}

function partStarts(parts: readonly Part[]): number[] {
  const ends = parts.map((_, i) =>
    parts.slice(0, i).reduce((sum, { run }) => sum + run.shape.keys, 0),
  );
  return ends;
}

/**
 * The keys, unmasked, cut in two or three parts, each run alone; their outputs and LSEs, combined in
 * fp64, are compared with the whole. Both must lie within the bounds of rounding: see `Combination` for
 * the bound of the combined result.
 */
export const keySplitting: Law = {
  statement: 'Parts of the keys, run alone and put together by their LSEs, make the whole',
  reason:
    'That is what split-KV, ring attention and prefix caches do with a kernel. An LSE that does not belong to its O weighs the parts wrongly.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 2 * cutsOfEach,
  without: ['sink', 'alibi', 'block-mask', 'prefix'],
  constraints: { causal: false, window: false },
  violation: async ({ problem, choice }, { run, promises }) => {
    if (problem.causal || problem.window !== null)
      throw new NotApplicable('the problem has a mask');
    const { keys } = problemShape(problem);
    const cut = partsOf(keys, choice, promises.multiples.keys ?? 1).map((part) =>
      arrangeProblem(problem, { keys: part }),
    );
    for (const part of cut) requirePromised(part, promises);
    const solved: Part[] = [];
    for (const each of [problem, ...cut]) {
      const ran = await run(each);
      if (!hasLse(ran)) throw new NotApplicable('the kernel gives no LSE, which it needs');
      const reference = exactAttention(each);
      solved.push({ run: ran, reference, bounds: runBounds(ran, reference, promises) });
    }
    const [whole, ...parts] = solved;
    return difference(whole!, parts);
  },
};
