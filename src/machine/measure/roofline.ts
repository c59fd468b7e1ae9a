import { RequestError } from '../../request-error.js';
import { type Amounts, type CtaCounters, sumOfCounters } from './counters.js';
import {
  laneOperations,
  type RooflineUnit,
  type RooflineUnitDefinition,
  rooflineUnits,
  type UnitPart,
  type UnitRates,
} from './unit-rates.js';

/** The work of one unit, and the time that it takes at its full rate. */
export interface RooflineLine extends Pick<
  RooflineUnitDefinition,
  'unit' | 'measure' | 'evidence'
> {
  readonly parts: readonly UnitPart[];
  /** In the unit's measure. */
  readonly amount: number;
  /** Clocks of one SM in which the unit is busy: the sum over the parts. */
  readonly clocks: number;
  /** The unit's clocks per clock of the tensor core; null without MMAs. */
  readonly ofTensorCore: number | null;
}

/** The least time that counted work takes on each unit of an SM, were the others endlessly fast. */
export interface Roofline {
  /** The name of the rates. */
  readonly rates: string;
  readonly lines: readonly RooflineLine[];
  /**
   * The unit with the most clocks among those whose rate is published, the first of them where several
   * are equal; null if none has any work.
   */
  readonly bound: RooflineUnit | null;
  /** Lane operations on units for which there is no rate. */
  readonly unrated: { readonly alu: Amounts; readonly conversion: Amounts };
}

function checkRates(rates: UnitRates): void {
  const { mmaFlops, mufuLanes, fmaLanes, sharedBytes, tensorBytes, bulkBytes } = rates;
  const values = {
    'mmaFlops[32]': mmaFlops[32],
    'mmaFlops[16]': mmaFlops[16],
    'mmaFlops[8]': mmaFlops[8],
    mufuLanes,
    fmaLanes,
    sharedBytes,
    tensorBytes,
    bulkBytes,
  };
  for (const [name, value] of Object.entries(values))
    if (!(value > 0 && Number.isFinite(value)))
      throw new RequestError(`rates ${rates.name}: ${name} is ${value}; give a positive number`);
}

/**
 * Clocks of one SM that the counted work takes on each unit at its rate, from the counters alone.
 * Several CTAs are taken as if one SM ran them all; ratios are then those of their mean. Only sums over
 * the SM are seen: work that falls unevenly on its four parts, bank conflicts, latencies and waits take
 * more.
 *
 * Source: the method is that of FlashAttention-4, arXiv 2603.05451, sections 3.1.1 and 3.2.1, which
 * counts the operands of MMAs alone as traffic of shared memory; here every byte counts, and the parts
 * tell which are which.
 *
 * @throws RequestError for a rate that is not positive
 */
export function roofline(
  counters: CtaCounters | readonly CtaCounters[],
  rates: UnitRates,
): Roofline {
  checkRates(rates);
  const all = sumOfCounters('length' in counters ? counters : [counters]);
  const measured = rooflineUnits.map(({ unit, measure, evidence, parts: partsOf }) => {
    const parts = partsOf(all, rates);
    const sum = (key: 'amount' | 'clocks'): number =>
      parts.reduce((total, part) => total + part[key], 0);
    return { unit, measure, evidence, parts, amount: sum('amount'), clocks: sum('clocks') };
  });
  const tensorCore = clocksOf(measured, 'tensor core');
  let bound: (typeof measured)[number] | null = null;
  for (const line of measured)
    if (line.evidence === 'published' && line.clocks > (bound?.clocks ?? 0)) bound = line;
  return {
    rates: rates.name,
    lines: measured.map((line) => ({
      ...line,
      ofTensorCore: tensorCore === 0 ? null : line.clocks / tensorCore,
    })),
    bound: bound?.unit ?? null,
    unrated: { alu: laneOperations(all, 'alu'), conversion: laneOperations(all, 'conversion') },
  };
}

/** The clocks of a unit among lines of a roofline; 0 for one that is not there. */
export function clocksOf(
  lines: readonly Pick<RooflineLine, 'unit' | 'clocks'>[],
  unit: RooflineUnit,
): number {
  return lines.find((line) => line.unit === unit)?.clocks ?? 0;
}

/** The bytes of shared memory that MMAs read as operands, in clocks: the paper's count. */
export function operandClocks({ lines }: Roofline): number {
  const shared = lines.find(({ unit }) => unit === 'shared memory');
  return (shared?.parts ?? [])
    .filter(({ name }) => name.endsWith('→ mma'))
    .reduce((sum, { clocks }) => sum + clocks, 0);
}

/** A roofline of work with a share of it done in another way. */
export interface RooflineAtShare {
  /** Share from 0 to 1. */
  readonly share: number;
  readonly roofline: Roofline;
}

/** The share at which the busiest unit is least busy. */
export interface BalancedShare {
  readonly share: number;
  /** Clocks of the busiest unit there. */
  readonly clocks: number;
  /** The units that are that busy. */
  readonly units: readonly RooflineUnit[];
}

interface Trend {
  readonly unit: RooflineUnit;
  readonly clocksAt: (share: number) => number;
}

/** Differences of clocks below this part of them are rounding. */
const tolerance = 1e-9;

/** The shares at which two units are equally busy, among 0 to 1. */
function crossings(trends: readonly Trend[]): readonly number[] {
  return trends.flatMap((a, i) =>
    trends.slice(i + 1).flatMap((b) => {
      const atZero = b.clocksAt(0) - a.clocksAt(0);
      const atOne = b.clocksAt(1) - a.clocksAt(1);
      const share = atZero / (atZero - atOne);
      return share > 0 && share < 1 ? [share] : [];
    }),
  );
}

/**
 * The share of work to be done in the other way so that the busiest of the units has as few clocks as
 * possible, the least share if several will do. Each unit's clocks are linear in the share, which two
 * rooflines of the same work at different shares settle.
 *
 * @throws RequestError when the shares are equal or not from 0 to 1, or no unit is given
 */
export function balancedShare(
  [first, second]: readonly [RooflineAtShare, RooflineAtShare],
  units: readonly RooflineUnit[],
): BalancedShare {
  for (const { share } of [first, second])
    if (!(share >= 0 && share <= 1))
      throw new RequestError(`share ${share}; give a number from 0 to 1`);
  if (first.share === second.share)
    throw new RequestError(`both rooflines have share ${first.share}; give two that differ`);
  if (units.length === 0) throw new RequestError('no unit to balance; name one or more');
  const trends = units.map((unit): Trend => {
    const clocks = [first, second].map(({ roofline }) => clocksOf(roofline.lines, unit));
    const slope = (clocks[1] - clocks[0]) / (second.share - first.share);
    return { unit, clocksAt: (share) => clocks[0] + slope * (share - first.share) };
  });
  const busiest = (share: number): number =>
    Math.max(...trends.map(({ clocksAt }) => clocksAt(share)));
  let best = 0;
  for (const share of [...crossings(trends), 1].sort((a, b) => a - b))
    if (busiest(share) < busiest(best) * (1 - tolerance)) best = share;
  const clocks = busiest(best);
  return {
    share: best,
    clocks,
    units: trends
      .filter(({ clocksAt }) => clocksAt(best) >= clocks * (1 - tolerance))
      .map(({ unit }) => unit),
  };
}
