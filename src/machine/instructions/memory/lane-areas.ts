import type { LanePlaces } from '../../isa/index.js';
import type { StrongAccess } from '../../ordering/index.js';
import type { CtaState, MachineState } from '../../state.js';
import type { VisitArea } from '../record.js';
import { forEachLegalPlace } from './lane-places.js';
import type { PlaceUse } from './locate-place.js';

/** Bytes that one lane after another accesses, as areas. */
export interface AreaRun {
  /** Bytes from one on, an address in global memory, else an offset in the CTA's shared memory. */
  readonly add: (space: 'shared' | 'global', cta: CtaState, first: number, bytes: number) => void;
  readonly end: () => void;
}

/** Properties of an instruction's accesses, apart from their places. */
export interface AccessQuality {
  /** The ordering that the accesses give others; weak ones give none. */
  readonly strong?: StrongAccess | undefined;
  /** For writes: whether they leave every byte as it is. */
  readonly repeats?: boolean | undefined;
}

/** Visits bytes that follow one another, or that are equally far apart, as one area. */
export function createAreaRun(visit: VisitArea, { strong, repeats }: AccessQuality): AreaRun {
  let space: 'shared' | 'global' = 'shared';
  let owner: CtaState | null = null;
  let start = 0;
  let count = 0;
  let stride = 0;
  let rows = 0;
  const end = (): void => {
    if (owner !== null && rows > 0)
      visit({ space, cta: owner, unit: 'byte', start, count, stride, rows, strong, repeats });
    rows = 0;
  };
  return {
    end,
    add: (inSpace, cta, first, bytes) => {
      if (rows > 0 && cta === owner && inSpace === space) {
        const last = start + (rows - 1) * stride;
        if (first === last && bytes === count) return;
        if (rows === 1 && first === start + count) {
          count += bytes;
          return;
        }
        const step = first - last;
        if (bytes === count && step >= count && (rows === 1 || step === stride)) {
          stride = step;
          rows++;
          return;
        }
      }
      end();
      space = inSpace;
      owner = cta;
      start = first;
      count = bytes;
      stride = 0;
      rows = 1;
    },
  };
}

/**
 * Visits the bytes of shared and global memory that the lanes access. Nobody else sees local memory, and
 * nobody writes constants and parameters.
 */
export function visitPlaces(
  machine: MachineState,
  cta: CtaState,
  { places, use, ...access }: AccessQuality & { places: LanePlaces; use: PlaceUse },
  visit: VisitArea,
): void {
  const run = createAreaRun(visit, access);
  forEachLegalPlace(machine, cta, places, use, (place) => {
    const { space, allocation, offset } = place;
    if (space === 'shared') run.add(space, place.cta, offset, places.bytes);
    else if (space === 'global') run.add(space, cta, allocation!.base + offset, places.bytes);
  });
  run.end();
}
