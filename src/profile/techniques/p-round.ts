import { formats, round, smallestNormal } from '../../formats/index.js';
import { createCandidates, evidenceOf, referenceReport } from '../functions.js';
import type { Cell, Domain } from '../cells.js';
import { reportCorners } from '../corners.js';
import type { Measure } from '../error-plan.js';
import { reportDomains, type DomainReport } from '../error-report.js';
import { sweepErrors } from '../error-sweep.js';
import { ordinalOfValue, valueOfOrdinal } from '../float32-order.js';
import type { WeightFormat } from '../limits/weight-formats.js';
import { beyond, cellOf } from './input-cells.js';
import {
  type FunctionErrorProfile,
  type ProfileOptions,
  linearPanel,
  logarithmicPanel,
  plotsOf,
} from './profile.js';

/** One way to round P: the format, and the power of two that P carries. */
interface WeightRounding {
  readonly format: WeightFormat;
  /** FlashAttention-4's max_offset: P = 2^(x + offset). */
  readonly offset: number;
}

/**
 * FlashAttention-4's roundings of P. Source: flash_attn/cute/flash_fwd_sm100.py of Dao-AILab/flash-attention: offset 8
 * for 8-bit inputs, so that P takes e4m3's range up to 256, else 0.
 */
export const weightRoundings: readonly WeightRounding[] = [
  { format: 'bf16', offset: 0 },
  { format: 'fp16', offset: 0 },
  { format: 'e4m3', offset: 0 },
  { format: 'e4m3', offset: 8 },
];

/** Thresholds below which a rounded P is lost, on p·2^offset and on x with P = 2^(x + offset). */
export interface Underflow extends WeightRounding {
  /** The largest p·2^offset that rounds to 0, and its x: all below are lost. */
  readonly lostUpTo: number;
  readonly lostUpToX: number;
  /** The largest p·2^offset whose rounded value is 0 or subnormal. */
  readonly subnormalUpTo: number;
  readonly subnormalUpToX: number;
}

/** The profile of the rounding of P. */
export interface WeightRoundingProfile extends FunctionErrorProfile {
  readonly technique: 'p-round';
  readonly underflows: readonly Underflow[];
}

const smallest = smallestNormal(formats.fp32);
const label = {
  zero: '+0',
  tiny: 'p > 0 subnormal',
  unit: '2^-126 <= p <= 1',
  high: '1 < p <= 256',
};

const cells: readonly Cell[] = [
  cellOf(label.zero, [0, 0], 'p', true),
  cellOf(label.tiny, [beyond(0), beyond(smallest)], 'p', true),
  cellOf(label.unit, [smallest, 1], 'p', true),
  cellOf(label.high, [beyond(1), 256], 'p', true),
];

const withoutOffset: Domain = {
  label: '0 <= p <= 1',
  has: (cell) => cell.label !== label.high,
};
const withOffset: Domain = { label: '0 <= p·2^8 <= 256', has: () => true };

const measures: readonly Measure[] = [
  { rounding: { format: 'bf16', overflow: 'overflow' }, error: 'relative' },
  { rounding: { format: 'fp16', overflow: 'overflow' }, error: 'relative' },
  { rounding: { format: 'e4m3', overflow: 'saturate' }, error: 'relative' },
];

/** The largest fp32 number from 0 to 256 whose rounding, which never decreases, stays below a limit. */
function largestBelow(format: WeightRounding['format'], limit: number): number {
  let [low, high] = [ordinalOfValue(0), ordinalOfValue(256)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (round(formats[format], valueOfOrdinal(middle)) < limit) low = middle;
    else high = middle - 1;
  }
  return valueOfOrdinal(low);
}

/** The thresholds at which a rounded P becomes subnormal and at which it is lost. */
export function underflowOf({ format, offset }: WeightRounding): Underflow {
  const lostUpTo = largestBelow(format, Number.MIN_VALUE);
  const subnormalUpTo = largestBelow(format, smallestNormal(formats[format]));
  return {
    format,
    offset,
    lostUpTo,
    subnormalUpTo,
    lostUpToX: Math.log2(lostUpTo) - offset,
    subnormalUpToX: Math.log2(subnormalUpTo) - offset,
  };
}

/** Keeps, in the domain with an offset, only the format that FlashAttention-4 rounds to with an offset. */
function withOffsetOnly(domain: DomainReport): DomainReport {
  if (domain.label !== withOffset.label) return domain;
  return {
    ...domain,
    functions: domain.functions.map(({ name, measures: all }) => ({
      name,
      measures: all.filter(({ rounding }) => rounding.format === 'e4m3'),
    })),
  };
}

/**
 * Profiles the rounding of P to FlashAttention-4's formats, at every fp32 number from 0 to 1, and to 256
 * for P with an offset.
 * @throws RequestError for a range without an input from 0 to 256
 */
export async function profileWeightRounding(
  options: ProfileOptions = {},
): Promise<WeightRoundingProfile> {
  const { range = {} } = options;
  const isWhole = range.from === undefined && range.to === undefined;
  const panel = isWhole
    ? logarithmicPanel('p', smallest, 256)
    : linearPanel('p', range.from ?? 0, range.to ?? 256);
  const draft = {
    candidates: ['P'],
    reference: 'identity',
    measures,
    increasing: true,
    panels: [panel.boundaries],
  } as const;
  const sweep = await sweepErrors(draft, cells, range, options);
  const domains = reportDomains(sweep, [withoutOffset, withOffset], createCandidates());
  return {
    technique: 'p-round',
    title: 'P rounded to the format of the second matrix product',
    range,
    functions: [evidenceOf('P')],
    reference: referenceReport('identity'),
    domains: domains.map(withOffsetOnly),
    corners: reportCorners(sweep),
    underflows: weightRoundings.map(underflowOf),
    plots: plotsOf(sweep, [panel], 'relative error in bf16'),
    notes: [],
  };
}
