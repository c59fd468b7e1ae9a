import type { ExponentialShare } from './exp2-shares.js';
import { measureShares, type PolynomialShareCase } from './polynomial-share-case.js';
import { measureRescale, type RescaleCase } from './rescale-case.js';
import type { TradeOffCase, TradeOffRequest } from './trade-off-request.js';

/** Consecutive cases of a plan by index, both ends included. */
export interface CaseRange {
  readonly first: number;
  readonly last: number;
}

/** Problems on which rescale thresholds are measured. */
export interface RescalePlan {
  readonly kind: 'rescale';
  readonly request: TradeOffRequest;
  readonly cases: readonly TradeOffCase[];
  readonly thresholds: readonly number[];
}

/** Problems on which divisions of the exponentials are measured, the first of them the baseline. */
export interface PolynomialSharePlan {
  readonly kind: 'polynomial-share';
  readonly request: TradeOffRequest;
  readonly cases: readonly TradeOffCase[];
  readonly shares: readonly ExponentialShare[];
}

/** Results for a range of cases, with the index of the first. */
export interface MeasuredCases<Case> {
  readonly first: number;
  readonly cases: readonly Case[];
}

function runner<Case>(
  cases: readonly TradeOffCase[],
  measure: (one: TradeOffCase) => Case,
): (range: CaseRange) => MeasuredCases<Case> {
  return ({ first, last }) => ({ first, cases: cases.slice(first, last + 1).map(measure) });
}

/** A function that measures the rescale thresholds on a range of the plan's cases. */
export function createRescaleSlices(
  plan: RescalePlan,
): (range: CaseRange) => MeasuredCases<RescaleCase> {
  return runner(plan.cases, (one) => measureRescale(one, plan.thresholds, plan.request));
}

/** A function that measures the divisions of the exponentials on a range of the plan's cases. */
export function createShareSlices(
  plan: PolynomialSharePlan,
): (range: CaseRange) => MeasuredCases<PolynomialShareCase> {
  return runner(plan.cases, (one) => measureShares(one, plan.shares, plan.request));
}
