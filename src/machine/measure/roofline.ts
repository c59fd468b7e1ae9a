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
