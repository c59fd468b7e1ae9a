import { fa4Model } from '../../../kernels/index.js';
import { scoreProblem, scoreRegime, type ScoreRegimeName } from '../../../properties/index.js';
import { type SliceOf, sweep, type SweepOptions } from '../sweep.js';
import type { MeasuredCases, PolynomialSharePlan, RescalePlan } from './case-plans.js';
import type { PolynomialShareCase } from './polynomial-share-case.js';
import type { RescaleCase } from './rescale-case.js';
import type { TradeOffRequest, TradeOffSizes } from './trade-off-request.js';

/** The problems that a trade-off was measured on. */
export interface MeasuredProblems extends TradeOffSizes {
  readonly architecture: string;
  readonly regimes: readonly { readonly name: ScoreRegimeName; readonly description: string }[];
}

/** A report's facts about the problems of a request. */
export function measuredProblems(request: TradeOffRequest): MeasuredProblems {
  const { queries, keys, dim, seed, architecture } = request;
  return {
    queries,
    keys,
    dim,
    seed,
    architecture,
    regimes: request.regimes.map((name) => ({ name, description: scoreRegime(name).description })),
  };
}

/** The evidence for the model's bits for the architecture and the formats, each line once. */
export function forwardEvidence({ architecture, formats }: TradeOffRequest): string[] {
  const sizes = { queries: 1, keys: 1, dim: 16, seed: 0 };
  const lines = formats.flatMap(
    (format) =>
      fa4Model.prepare(
        scoreProblem('normal-1', { ...sizes, format }),
        new Map([['architecture', architecture]]),
      ).evidence,
  );
  return [...new Set(lines)];
}

/** The measurements of a plan for each case. */
type CaseOf<Plan> = Plan extends RescalePlan ? RescaleCase : PolynomialShareCase;

/** Measures every case of a plan, problem by problem, on the threads; returns them in the plan's order. */
export async function measureCases<Plan extends RescalePlan | PolynomialSharePlan>(
  plan: Plan,
  options: SweepOptions,
): Promise<CaseOf<Plan>[]> {
  const ranges = plan.cases.map((_, i) => ({ first: i, last: i })) as SliceOf<Plan>[];
  const measured: CaseOf<Plan>[] = [];
  await sweep(plan, ranges, options, (result) => {
    const { first, cases } = result as MeasuredCases<CaseOf<Plan>>;
    cases.forEach((one, i) => (measured[first + i] = one));
  });
  return measured;
}

/** The default sizes of the problems on which trade-offs are measured. */
export const usualSizes = { queries: 256, keys: 2048, dim: 64 } as const;
