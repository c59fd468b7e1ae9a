import {
  keptWeights,
  type KeptWeights,
  type Problem,
  type ProblemShape,
} from '../../../../problem/index.js';
import { scoreFaults } from './score-faults.js';
import { factorsOfKept } from '../replay/backward-row.js';
import type { ReplayedFault } from './replayed-fault.js';

const inBackward = 'in the backward pass';

/** Shifts of the dropout that is taken: by heads, queries and keys. */
const shifts = [
  { head: 0, query: 0, key: 1, words: 'of the next key' },
  { head: 0, query: 0, key: -1, words: 'of the key before' },
  { head: 0, query: 1, key: 0, words: 'of the next query' },
  { head: 0, query: -1, key: 0, words: 'of the query before' },
  { head: 1, query: 0, key: 0, words: 'of the next head' },
  { head: -1, query: 0, key: 0, words: 'of the head before' },
] as const;

/** The weights that dropout keeps, shifted: each takes those of another, and the last one those of the first behind it. */
function shifted(
  kept: KeptWeights,
  { batch, heads, queries, keys }: ProblemShape,
  by: (typeof shifts)[number],
): KeptWeights {
  const row = new Uint8Array(keys);
  const within = (x: number, size: number) => (x + size) % size;
  return {
    share: kept.share,
    fill: (head, query, firstKey, target) => {
      kept.fill(within(head + by.head, batch * heads), within(query + by.query, queries), 0, row);
      for (let j = 0; j < target.length; j++) target[j] = row[within(firstKey + j + by.key, keys)];
    },
  };
}

/** Backward passes that drop other weights than the forward, or others in P than in dP. */
function* dropoutFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  const kept = keptWeights(problem, shape);
  if (kept === null) return;
  for (const by of shifts) {
    const factors = factorsOfKept(shifted(kept, shape, by));
    yield {
      id: 'dropout-of-another',
      sentence: `dropout ${inBackward} keeps the weights ${by.words}`,
      change: { keptOfP: factors, keptOfDp: factors },
    };
  }
  const unscaled = factorsOfKept(kept, 1);
  yield {
    id: 'dropout-factor',
    sentence: `dropout's factor 1 / (1 − p) is missing ${inBackward}`,
    change: { keptOfP: unscaled, keptOfDp: unscaled },
  };
  yield {
    id: 'dropout-factor',
    sentence: "dropout's factor 1 / (1 − p) is missing in dP",
    change: { keptOfDp: unscaled },
  };
  yield {
    id: 'dropout-missing',
    sentence: `dropout is left out ${inBackward}`,
    change: { keptOfP: null, keptOfDp: null },
  };
  yield {
    id: 'dropout-missing',
    sentence: 'dropout is not applied to dP, which dS = P(dP − D) is made of',
    change: { keptOfDp: null },
  };
  yield {
    id: 'dropout-missing',
    sentence: 'dropout is not applied to the P of dV',
    change: { keptOfP: null },
  };
}

/** Backward passes whose P is not that of the forward, or whose dP or slope is not that of its P. */
export function* weightFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  yield* dropoutFaults(problem, shape);
  yield* scoreFaults(problem, shape);
}
