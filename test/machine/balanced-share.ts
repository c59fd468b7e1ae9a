import { clocksOf, type Roofline, type RooflineUnit } from '../../src/machine/index.js';

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
 */
export function balancedShare(
  [first, second]: readonly [RooflineAtShare, RooflineAtShare],
  units: readonly RooflineUnit[],
): BalancedShare {
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
