import type { JudgedGradientName } from '../gradient-quantities.js';
import {
  placeCount,
  techniquesByPlace,
  type GradientTechnique,
  type TechniqueShares,
} from './gradient-techniques.js';

/** The total of a technique for a gradient, in the gradient's unit. */
export interface GradientTechniqueLine {
  readonly technique: GradientTechnique;
  /** The worst case of its effect on an element: averaged over all elements, and over those of the worst row. */
  readonly worst: number;
  readonly largest: number;
  /** The root mean square to expect. */
  readonly rms: number;
  /** Its part of the sum of all worst cases. */
  readonly share: number;
}

/** The totals of the techniques for a gradient. */
export interface GradientTechniqueTable {
  /** The lines in the order of a backward pass, without techniques that the gradient does not have. */
  readonly techniques: readonly GradientTechniqueLine[];
  /** All of them together, without the oracle's radius. */
  readonly total: Omit<GradientTechniqueLine, 'technique' | 'share'>;
  /** Number of elements of all rows, and of those that are left out since one element of their row has no bound. */
  readonly elements: number;
  readonly unbounded: number;
}

/** Sums over the rows of a gradient so far. Only `addToTable` may change them. */
export interface TechniqueSums {
  elements: number;
  unbounded: number;
  readonly worst: Float64Array;
  readonly variance: Float64Array;
  readonly largest: Float64Array;
  largestTotal: number;
}

/** Sums over no rows. */
export function emptyTechniqueSums(): TechniqueSums {
  const numbers = () => new Float64Array(placeCount);
  return {
    elements: 0,
    unbounded: 0,
    worst: numbers(),
    variance: numbers(),
    largest: numbers(),
    largestTotal: 0,
  };
}

/** Adds the shares of rows of `dim` elements. */
export function addToTable(sums: TechniqueSums, shares: TechniqueShares, dim: number): void {
  const { worst, variance } = shares;
  for (let from = 0; from < worst.length; from += placeCount) {
    sums.elements += dim;
    const ofRow = worst.subarray(from, from + placeCount);
    const all = ofRow.reduce((sum, x) => sum + x, 0);
    if (!Number.isFinite(all)) {
      sums.unbounded += dim;
      continue;
    }
    sums.largestTotal = Math.max(sums.largestTotal, all / dim);
    for (let place = 0; place < placeCount; place++) {
      sums.worst[place] += ofRow[place];
      sums.variance[place] += variance[from + place];
      sums.largest[place] = Math.max(sums.largest[place], ofRow[place] / dim);
    }
  }
}

/** The table of a gradient whose rows have all been added. */
export function techniqueTable(
  sums: TechniqueSums,
  of: JudgedGradientName,
): GradientTechniqueTable {
  const { elements, unbounded } = sums;
  const count = Math.max(1, elements - unbounded);
  const worst = sums.worst.reduce((sum, x) => sum + x, 0);
  const variance = sums.variance.reduce((sum, x) => sum + x, 0);
  const techniques = techniquesByPlace[of].flatMap((technique, place) =>
    technique === null
      ? []
      : [
          {
            technique,
            worst: sums.worst[place] / count,
            largest: sums.largest[place],
            rms: Math.sqrt(sums.variance[place] / count),
            share: worst === 0 ? 0 : sums.worst[place] / worst,
          },
        ],
  );
  const total = {
    worst: worst / count,
    largest: sums.largestTotal,
    rms: Math.sqrt(variance / count),
  };
  return { techniques, total, elements, unbounded };
}
