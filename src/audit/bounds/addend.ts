import { decodeToFloat64, formats } from '../../formats/index.js';
import {
  rowPlaces,
  scoreLaw,
  type Problem,
  type ProblemShape,
  type ScoreAddend,
} from '../../problem/index.js';
import { tileRows } from './memory.js';

/** A problem's score addends, and the size of the parts that a kernel may add one by one. */
export interface Addends {
  readonly addend: ScoreAddend;
  /** Writes at least |bias| + the largest magnitude of an ALiBi term, in the same places. */
  readonly size: ScoreAddend;
}

/**
 * The size of ALiBi terms: slope times the distance from the diagonal. With a causal mask a kernel may add slope times
 * the key's number instead, as FlashAttention-2 does, which moves all scores of a row by one number: then whichever is
 * larger. A sink does not move with them.
 */
function alibiSize(problem: Problem, shape: ProblemShape): ScoreAddend | null {
  const { alibiSlopes, causal, window, sink } = problem;
  if (alibiSlopes === undefined) return null;
  const slopes = decodeToFloat64(alibiSlopes.data, formats[alibiSlopes.format]);
  const perSequence = alibiSlopes.shape.length === 2 ? shape.heads : 0;
  const placeOf = rowPlaces(problem, shape);
  const mayCountKeys = causal && (window?.left ?? -1) < 0 && sink === undefined;
  return (head, query, firstKey, target) => {
    const place = placeOf(head, query);
    const slope = Math.abs(slopes[place.sequence * perSequence + place.head]);
    const diagonal = place.query + place.keys - place.queries;
    for (let j = 0; j < target.length; j++) {
      const key = firstKey + j - place.firstKey;
      const distance = Math.abs(diagonal - key);
      target[j] = slope * (mayCountKeys ? Math.max(distance, key) : distance);
    }
  };
}

/**
 * The addends of a problem's scores (see `scoreLaw`), with their sizes: a kernel that forms the parts and adds them
 * errs relative to these. Null for a problem that adds nothing.
 */
export function createAddends(problem: Problem, shape: ProblemShape): Addends | null {
  const { addend } = scoreLaw(problem, shape);
  if (addend === null) return null;
  const alibi = alibiSize(problem, shape);
  const isBoth = problem.bias !== undefined && alibi !== null;
  const room = new Float64Array(tileRows);
  return {
    addend,
    size: (head, query, firstKey, target) => {
      if (alibi !== null) alibi(head, query, firstKey, target);
      if (alibi !== null && !isBoth) return;
      const sum = room.length === target.length ? room : new Float64Array(target.length);
      addend(head, query, firstKey, sum);
      // |bias| ≤ |sum| + |ALiBi|.
      for (let j = 0; j < target.length; j++)
        target[j] = Math.abs(sum[j]) + (isBoth ? 2 * target[j] : 0);
    },
  };
}
