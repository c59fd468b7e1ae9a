import type { Place } from '../../../rows/index.js';
import type { Prediction } from '../prediction.js';
import { replay, replayWay, type Replayed } from '../replay/replay.js';
import type { BackwardChange } from '../replay/backward-row.js';

/** A fault of the backward pass, as what it does otherwise. */
export interface ReplayedFault {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  readonly change: BackwardChange;
  /** Where it is, and the rows that it touches, as of a prediction. */
  readonly place?: Place;
  readonly rows?: Uint8Array;
}

/**
 * What kernels make D and the LSE of, to which a P that is another gives another weight: those of the stored forward, exact ones, and of
 * D what a framework makes of the P and dP that it has.
 */
function waysOf({ stored }: Replayed, { delta }: BackwardChange): readonly BackwardChange[] {
  if (delta !== undefined) return [{}];
  return [...(stored === null ? [] : [stored]), {}, { delta: 'weights' }];
}

/** Those of some faults that give what was given, within the worst case. */
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
