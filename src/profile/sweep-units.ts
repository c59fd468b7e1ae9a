/**
 * Keeps what is found of a sweep that is carried out in several sittings or by several processes. Its
 * slices are cut into units, numbered from 0, which are kept whole.
 */
export interface SweepLedger {
  /** Called before anything is done, with how many units there are. */
  readonly begin?: (units: number) => void;
  /** What is known of a unit, a result for each of its slices; undefined for nothing yet. */
  readonly recall: (unit: number) => readonly unknown[] | undefined;
  /** Whether a unit of which nothing is known is to be carried out here. */
  readonly isOwn: (unit: number) => boolean;
  /** Keeps what was found of a unit. */
  readonly record: (unit: number, results: readonly unknown[]) => void;
}

/** Thrown at the end of a sweep that did its share, when units are left to other processes. */
export class UnfinishedSweep extends Error {
  override readonly name = 'UnfinishedSweep';
  /** The units of which nothing is known. */
  readonly missing: readonly number[];

  constructor(missing: readonly number[]) {
    super(`${missing.length} units of the sweep are left to others`);
    this.missing = missing;
  }
}

/** The most units that a sweep is cut into: of the longest each takes about a second. */
const mostUnits = 256;

/** The slices of a sweep by unit, in their order; the same for as many slices. */
export function unitsOf<Slice>(slices: readonly Slice[]): readonly (readonly Slice[])[] {
  const size = Math.ceil(slices.length / mostUnits);
  return Array.from({ length: Math.ceil(slices.length / Math.max(size, 1)) }, (_, unit) =>
    slices.slice(unit * size, (unit + 1) * size),
  );
}
