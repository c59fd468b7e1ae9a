import { clipRanges, problemMask } from '../../../../problem/index.js';
import { axisOf, everywhere, placeOfRows } from '../../../rows/index.js';
import { fails } from '../prediction.js';
import type { Replayed } from '../replay/replay.js';
import { offRows } from '../scope.js';
import type { ReplayedFault } from './replayed-fault.js';

/**
 * Keys that some queries do not see in the backward pass: those whose dK or dV is off, where dQ tells which queries. P of all other keys is as
 * it was, by the LSE of the forward.
 */
export function* visitFaults({ failed, scope }: Replayed): Generator<ReplayedFault> {
  const { problem, measured, given } = failed;
  const { shape } = measured;
  const { keys } = shape;
  const ofKeys = given.find((one) => one.quantity.name !== 'dq' && fails(failed, one));
  if (ofKeys === undefined || problem.sequences !== undefined) return;
  let [first, last] = [keys, -1];
  offRows(failed, ofKeys).forEach((isOff, row) => {
    if (isOff === 0) return;
    first = Math.min(first, row % keys);
    last = Math.max(last, row % keys);
  });
  // A gradient may fail of which no row is off by itself.
  if (last < first || last - first + 1 >= keys) return;
  const { ranges } = problemMask(problem, shape);
  const rows = scope === null ? [] : Array.from(scope.keys()).filter((row) => scope[row] === 1);
  const place = scope === null ? everywhere : placeOfRows(rows, { ...problem, shape });
  const members = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  yield {
    id: 'keys-unseen',
    sentence: `keys ${first} to ${last} are left out in the backward pass, as where a tile is not visited`,
    place: { ...place, keys: axisOf(members, keys) },
    change: {
      ranges: (head, query) => {
        const own = ranges(head, query);
        return [...clipRanges(own, 0, first), ...clipRanges(own, last + 1, keys)];
      },
    },
  };
}
