import { scoreRegimeNames } from '../../../properties/index.js';
import { createCandidates } from '../candidates.js';
import { offsetTrades, type OffsetTrade } from '../limits/offset-trade.js';
import { limitOffsets, thresholdLimits, type ThresholdLimit } from '../limits/threshold-limits.js';
import { weightFormats } from '../limits/weight-formats.js';
import {
  forwardEvidence,
  measureCases,
  measuredProblems,
  type MeasuredProblems,
} from '../trade-offs/measured-problems.js';
import type { RescaleCase } from '../trade-offs/rescale-case.js';
import { resolveTradeOff, tradeOffCases } from '../trade-offs/trade-off-request.js';
import type { ProfileOptions } from './profile.js';
import { summariseRescale } from './rescale-summary.js';
import { usualSizes } from './trade-off-sizes.js';

/** The thresholds that are compared, in log2; Infinity never rescales. */
export const rescaleThresholds: readonly number[] = [0, 2, 4, 8, 16, Infinity];

/** The profile of FlashAttention-4's rescale threshold. */
export interface RescaleProfile {
  readonly technique: 'rescale';
  readonly title: string;
  readonly problems: MeasuredProblems;
  readonly evidence: readonly string[];
  readonly thresholds: readonly number[];
  readonly cases: readonly RescaleCase[];
  /** Proven for every format of weights, measured or not. */
  readonly limits: readonly ThresholdLimit[];
  readonly trades: readonly OffsetTrade[];
  readonly notes: readonly string[];
  /** What the figures say to the author of a kernel. */
  readonly summary: readonly string[];
}

const notes: readonly string[] = [
  'With an infinite threshold a row that sees no key in its first block, as under a causal mask, keeps the maximum -inf for good, and its P becomes infinite or NaN; any finite threshold rescales there.',
  'The polynomial takes exponents below 128 only: at 128 it gives infinity, beyond numbers of either sign.',
];

/**
 * Profiles FlashAttention-4's rescale threshold: the emulated forward against exact attention with each
 * threshold on problems of several regimes of scores, and the limits that are proven for all inputs.
 * The same options give the same figures, whatever the number of threads.
 * @throws RequestError for a regime, format or size that there is not
 */
export async function profileRescale(options: ProfileOptions = {}): Promise<RescaleProfile> {
  const request = resolveTradeOff(options, { ...usualSizes, regimes: scoreRegimeNames });
  const thresholds = rescaleThresholds;
  const plan = { kind: 'rescale', request, cases: tradeOffCases(request), thresholds } as const;
  const cases = await measureCases(plan, options);
  const { keys } = request;
  const limits = thresholdLimits(weightFormats, { thresholds, keys }, createCandidates());
  const trades = limits
    .filter(({ offset, format }) => offset === limitOffsets[0] && format !== 'bf16')
    .flatMap((limit) => offsetTrades(limit, thresholds));
  return {
    technique: 'rescale',
    title: "FlashAttention-4's rescale threshold: how far a row's maximum may lag, in log2",
    problems: measuredProblems(request),
    evidence: forwardEvidence(request),
    thresholds,
    cases,
    limits,
    trades,
    notes,
    summary: summariseRescale(cases, limits, keys),
  };
}
