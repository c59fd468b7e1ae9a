import {
  problemMask,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../problem/index.js';

/** The outline of the keys that a row sees, as numbers that a diagonal changes by the same from row to row. */
function outline(ranges: readonly KeyRange[]): readonly [number, number, number] {
  const last = ranges.length - 1;
  return last < 0 ? [0, 0, 0] : [ranges.length, ranges[0].begin, ranges[last].end];
}

/**
 * The queries of a head where the visible keys change in another way than between the two queries before: the
 * first and the last of a sequence or a document, the first that sees keys, the first that a window cuts.
 */
function edgesOfHead(mask: Mask, head: number, queries: number): number[] {
  const edges: number[] = [];
  let [before, here] = [outline([]), outline(queries > 0 ? mask.ranges(head, 0) : [])];
  for (let query = 0; query < queries - 1; query++) {
    const next = outline(mask.ranges(head, query + 1));
    const steady = query > 0 && here.every((x, i) => x - before[i] === next[i] - x);
    if (!steady) edges.push(query);
    [before, here] = [here, next];
  }
  if (queries > 0) edges.push(queries - 1);
  return edges;
}

/** Whether heads of one batch may see different keys. */
function differsByHead({ mask, bias, blockMask }: Problem): boolean {
  return mask !== undefined || bias !== undefined || blockMask !== undefined;
}

/**
 * Makes a function that lists the queries of a head where the set of visible keys changes shape, ascending, the
 * first and the last query among them.
 * @returns the queries of a head, counted over [batch, heads]; heads that see the same keys share a list
 */
export function maskEdges(
  problem: Problem,
  shape: ProblemShape,
): (head: number) => readonly number[] {
  // Lists differ from row to row, and have no edges.
  const { keyLists, ...others } = problem;
  void keyLists;
  const mask = problemMask(others, shape);
  const known = new Map<number, readonly number[]>();
  const ownHead = differsByHead(problem);
  return (head) => {
    const ofBatch = head - (head % shape.heads);
    const at = ownHead ? head : problem.segments === undefined ? 0 : ofBatch;
    const edges = known.get(at) ?? edgesOfHead(mask, at, shape.queries);
    known.set(at, edges);
    return edges;
  };
}
