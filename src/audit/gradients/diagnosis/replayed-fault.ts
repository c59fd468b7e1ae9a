import type { Prediction } from './prediction.js';
import { replay, type Replayed } from './replay/replay.js';
import type { BackwardChange } from './replay/backward-row.js';

/** A fault of the backward pass, as what it does otherwise. */
export interface ReplayedFault {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  readonly change: BackwardChange;
}

/** Those of some faults that give what was given, within the worst case. */
export function* replayFaults(
  of: Replayed,
  faults: Iterable<ReplayedFault>,
): Generator<Prediction> {
  for (const { id, sentence, change } of faults) {
    const replayed = replay(of, change);
    if (replayed !== null) yield { id, sentence, ...replayed };
  }
}
