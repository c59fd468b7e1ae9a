import type { FaultOdds, RowSample } from '../../../audit/index.js';
import { formatNumber } from '../../../words/index.js';

/**
 * The rows that were judged, where those are not all, and the probabilities with which faults of the others are seen.
 */
export interface ReportedSample extends Pick<
  RowSample,
  'seed' | 'rows' | 'of' | 'edges' | 'random' | 'statistics'
> {
  readonly odds: readonly FaultOdds[];
}

/** The rows that are bounded, where those are not all: nothing is judged, so no fault is seen. */
export type BoundedSample = Pick<RowSample, 'seed' | 'rows' | 'of' | 'edges' | 'random'>;

/** A sample of bounded rows without their numbers, which follow from the seed. */
export function boundedSample({ seed, rows, of, edges, random }: RowSample): BoundedSample {
  return { seed, rows, of, edges, random };
}

/** A sample without the numbers of its rows, which follow from the seed. */
export function reportedSample(sample: RowSample): ReportedSample {
  const { seed, rows, of, edges, random, statistics, odds } = sample;
  return {
    seed,
    rows,
    of,
    edges,
    random,
    ...(statistics !== undefined && { statistics }),
    odds: odds.map((one) => ({ ...one })),
  };
}

/** Describes the rows that were judged: a clause. */
export function describeSample(sample: BoundedSample & Pick<ReportedSample, 'statistics'>): string {
  const { seed, rows, of, edges, random, statistics } = sample;
  const chosen = `${rows} of ${of} rows, ${edges} for their place and ${random} at random by seed ${seed}`;
  return statistics === undefined
    ? chosen
    : `${chosen}; structure tests and FlashAttention's rule by ${statistics} of the sampled rows`;
}

/** Describes the rows that a sample of bounded rows leaves out: a clause. */
export function describeUnbounded({ rows, of }: BoundedSample): string {
  return `${of - rows} of ${of} rows, which are not in the sample: the largest bound of all rows may be larger, and rms is of the sample`;
}

/** "more than 0.9999" where the digits would say 1 although it is not certain. */
function probability(seen: number): string {
  return seen < 1 && seen > 0.9999 ? 'more than 0.9999' : formatNumber(seen);
}

/** Describes the rows that a sample leaves out, and the faults that this may hide: a clause. */
export function describeUnsampled({ rows, of, odds }: ReportedSample): string {
  const each = odds.map(
    ({ fault, rows, seen }, i) =>
      `${i === 0 ? 'a fault in ' : 'in '}${fault}${i === 0 ? ` (${rows}) is seen with probability` : ''} ${probability(seen)}`,
  );
  return `${of - rows} of ${of} rows, which are not in the sample: ${each.join(', ')}`;
}
