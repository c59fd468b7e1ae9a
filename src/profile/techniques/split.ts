import type { PolynomialDegree } from '../../../kernels/index.js';
import { type CandidateName, createCandidates, degreeName, evidenceOf } from '../functions.js';
import type { Cell, Domain } from '../cells.js';
import type { Envelope } from '../envelope.js';
import { reportDomains } from '../error-report.js';
import { domainCrossing, sweepErrors } from '../error-sweep.js';
import { ordinalOfValue } from '../float32-order.js';
import { createInputView, type InputView } from '../input-view.js';
import type { MonotonicityBreaks } from '../record.js';
import { exp2Cells, exp2Domains } from './input-cells.js';
import { exp2Measures, hardwareExp2 } from './exp2-profile.js';
import { type FunctionErrorProfile, type ProfileOptions, linearPanel, plotsOf } from './profile.js';
import { type TuningLanes, tuningLanes } from '../trade-offs/exp2-shares.js';

/** Neighbouring inputs in the wrong order because different lanes computed them. */
interface CrossingReport {
  readonly domain: string;
  readonly name: CandidateName;
  readonly format: string;
  /** Breaks where the hardware has the smaller input, and where the polynomial has it. */
  readonly hardwareFirst: CrossingBreaks;
  readonly polynomialFirst: CrossingBreaks;
}

/** Such pairs in one order. */
export interface CrossingBreaks {
  readonly count: number;
  /** The largest, in ulps of the format, at the smaller input. */
  readonly largestUlps: number | null;
  readonly largestAt: InputView | null;
  readonly firstAt: InputView | null;
}

/** The step from the hardware's fp32 result up to the polynomial's, over one domain. */
interface StepExtent {
  readonly domain: string;
  readonly name: CandidateName;
  /** The smallest and largest polynomial/hardware − 1; null where none is measured. */
  readonly least: number | null;
  readonly most: number | null;
  /**
   * log2 of 1 plus the larger step: inputs on different branches may come out in the wrong order
   * when they are nearer than this.
   */
  readonly reach: number | null;
}

/** The profile of the split of a row between the polynomial and the hardware. */
export interface SplitProfile extends FunctionErrorProfile {
  readonly technique: 'split';
  readonly tunings: readonly TuningLanes[];
  readonly steps: readonly StepExtent[];
  readonly crossings: readonly CrossingReport[];
}

const domains: readonly Domain[] = exp2Domains.slice(0, 2);
/** Cells with softmax weights: at most 2^8 with a stale maximum, and here up to 2^127. */
const cells: readonly Cell[] = exp2Cells.filter((cell) => domains.some(({ has }) => has(cell)));
const measures = exp2Measures.slice(0, 3);

/** Boundaries of one column for each domain, so that their envelopes are the extents over the domains. */
const domainBoundaries = [-126, 2 ** -149, 127 + 2 ** -17].map(ordinalOfValue);

function stepExtent(
  domain: string,
  name: CandidateName,
  { least, most }: Envelope,
  column: number,
): StepExtent {
  const [low, high] = [least[column], most[column]];
  if (low > high) return { domain, name, least: null, most: null, reach: null };
  const reach = Math.max(Math.log2(1 + high), -Math.log2(1 + low));
  return { domain, name, least: low, most: high, reach };
}

function crossingBreaks(
  { count, largest, first }: MonotonicityBreaks,
  look: (ordinal: number) => InputView,
): CrossingBreaks {
  return {
    count,
    largestUlps: largest[0]?.value ?? null,
    largestAt: largest.length === 0 ? null : look(largest[0].ordinal),
    firstAt: first.length === 0 ? null : look(first[0]),
  };
}

/**
 * Profiles the step between FlashAttention-4's polynomial and the hardware's exp2, which share the
 * lanes of a row, at every fp32 input of [−126, 127] within the range.
 * @throws RequestError for an unknown tuning entry or a range without such an input
 */
export async function profileSplit(options: ProfileOptions = {}): Promise<SplitProfile> {
  const { degrees = [3] as readonly PolynomialDegree[], range = {}, architecture } = options;
  const tunings = tuningLanes(options.tuning);
  const candidates = [hardwareExp2[0], ...degrees.map(degreeName)];
  const { from = -126, to = 127 } = range;
  const panels = [linearPanel('x', Math.max(from, -126), Math.min(to, 127))];
  if (from < -1 && to >= 0) panels.push(linearPanel('x, one octave', -1, 0));
  const draft = {
    candidates,
    reference: 'baseline',
    measures,
    increasing: true,
    panels: [...panels.map(({ boundaries }) => boundaries), domainBoundaries],
  } as const;
  const sweep = await sweepErrors(draft, cells, range, options);
  const functions = createCandidates();
  const view = createInputView(sweep.plan, functions);
  const polynomials = candidates.slice(1);
  const reports = reportDomains(sweep, domains, functions).map((domain) => ({
    ...domain,
    functions: domain.functions.slice(1),
  }));
  const swept = domains.filter(({ label }) => reports.some((report) => report.label === label));
  return {
    technique: 'split',
    title: "polynomial/hardware - 1: the step between the lanes of a row of FlashAttention-4's P",
    functions: candidates.map((name) => evidenceOf(name, architecture)),
    range,
    reference: {
      formula: `${hardwareExp2[0]} of x`,
      relativeError: 0,
      certainty: 2 ** -54,
      absoluteCertainty: null,
    },
    domains: reports,
    corners: [],
    tunings,
    steps: domains.flatMap(({ label }, d) =>
      polynomials.map((name, p) => {
        const envelope = sweep.envelopes[p + 1][panels.length];
        return stepExtent(label, name, envelope, d);
      }),
    ),
    crossings: swept.flatMap((domain) =>
      polynomials.flatMap((name, p) =>
        measures.map((measure, m): CrossingReport => {
          const { fromBaseline, toBaseline } = domainCrossing(sweep, domain, p + 1, m);
          const look = (ordinal: number): InputView => view(ordinal, name, measure);
          return {
            domain: domain.label,
            name,
            format: measure.rounding.format,
            hardwareFirst: crossingBreaks(fromBaseline, look),
            polynomialFirst: crossingBreaks(toBaseline, look),
          };
        }),
      ),
    ),
    plots: plotsOf(sweep, panels, 'polynomial/hardware - 1 in fp32'),
    notes: [],
  };
}
