import type { Place } from '../../../rows/index.js';
import type { Prediction } from '../prediction.js';
import { replay, replayWay, type Replayed } from '../replay/replay.js';
import type { BackwardChange } from '../replay/backward-row.js';

/** A fault of the backward pass, as the change that it makes. */
export interface ReplayedFault {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  readonly change: BackwardChange;
  /** The place of the fault, and the rows that it touches, as in a prediction. */
  readonly place?: Place;
  readonly rows?: Uint8Array;
}

/**
 * Sources of D and the LSE in kernels, which give another weight to a wrong P: those of the stored forward, exact ones, and for D a
 * framework's own P and dP.
 */
function waysOf({ stored }: Replayed, { delta }: BackwardChange): readonly BackwardChange[] {
  if (delta !== undefined) return [{}];
  return [...(stored === null ? [] : [stored]), {}, { delta: 'weights' }];
}

/** The faults among some that explain the given gradients, within the worst case. */
export function* replayFaults(
  of: Replayed,
  faults: Iterable<ReplayedFault>,
): Generator<Prediction> {
  for (const { change, ...fault } of faults)
    for (const way of waysOf(of, change)) {
      const replayed = replay(of, change, way);
      if (replayed === null) continue;
      const without = () => replayWay(of, way);
      yield { ...fault, ...replayed, ...(replayed.isShifted && { without }) };
    }
}
