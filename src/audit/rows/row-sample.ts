import type { Problem, ProblemShape, RowSelection } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { faultOdds, type FaultOdds } from './fault-odds.js';
import { maskEdges } from './mask-edges.js';
import { drawsOf, drawSome } from './random-numbers.js';

/** The rows of a problem that are judged, and the faults that the others may hide. */
export interface RowSample {
  /** The same seed draws the same rows. */
  readonly seed: number;
  /** Number of rows that are judged, and of all rows: over all heads. */
  readonly rows: number;
  readonly of: number;
  /** Number of judged rows that are chosen for their place, and of those that are drawn. */
  readonly edges: number;
  readonly random: number;
  /** Number of judged rows that the structure tests and the usual checks are made of, where not all. */
  readonly statistics?: number;
  /** The probabilities that faults of some sizes are seen. */
  readonly odds: readonly FaultOdds[];
  /** [batch, heads, rows of a head], ascending in each head. */
  readonly selection: RowSelection;
}

/** Queries of a tile, whose first and last rows are chosen for their place. */
const tileRows = 128;

/** Parts of a head's rows that are given to the edges of the mask, and of tiles, where there are more edges. */
const mostAtMask = 1 / 4;
const mostAtTiles = 1 / 4;

/** The first and last queries of tiles. */
function tileEdges(queries: number): number[] {
  const edges: number[] = [];
  for (let first = 0; first < queries; first += tileRows)
    edges.push(first, Math.min(first + tileRows, queries) - 1);
  return edges;
}

/**
 * The rows of one head: the first and the last query; edges of the mask and of tiles, some of them where they
 * would be more than a quarter of the rows each; the rest at random among all others.
 */
function rowsOfHead(
  atMask: readonly number[],
  atTiles: readonly number[],
  { queries, rows, seed, head }: { queries: number; rows: number; seed: number; head: number },
): { readonly edges: ReadonlySet<number>; readonly random: readonly number[] } {
  const draw = drawsOf(seed, head);
  const edges = new Set<number>();
  const ends = [0, queries - 1];
  for (const query of drawSome(ends, rows > 2 ? 2 : 0, draw)) edges.add(query);
  const add = (some: readonly number[], share: number) => {
    const fresh = some.filter((query) => !edges.has(query));
    for (const query of drawSome(fresh, Math.floor(rows * share), draw)) edges.add(query);
  };
  add(atMask, mostAtMask);
  add(atTiles, mostAtTiles);
  const others: number[] = [];
  for (let query = 0; query < queries; query++) if (!edges.has(query)) others.push(query);
  return { edges, random: drawSome(others, rows - edges.size, draw) };
}

/** Number of rows, over all heads, and the seed that draws them. */
export interface RowSampleRequest {
  readonly rows: number;
  readonly seed: number;
}

/**
 * Chooses rows of a problem, as many of each head. Every head has its first and last query, queries where the set
 * of visible keys changes shape and where tiles of 128 queries begin and end, and random ones; half of the rows, at
 * least, are random.
 * @returns null where that would be all rows
 * @throws RequestError for fewer rows than heads, and for rows of a problem that is itself a sample
 */
export function chooseRows(
  problem: Problem,
  shape: ProblemShape,
  { rows, seed }: RowSampleRequest,
): RowSample | null {
  const { batch, heads, queries } = shape;
  const headCount = batch * heads;
  if (problem.rows !== undefined)
    throw new RequestError('the problem is a sample of rows already; judge all of its rows');
  if (rows >= headCount * queries) return null;
  const ofHead = Math.floor(rows / headCount);
  if (ofHead < 1)
    throw new RequestError(
      `${rows} rows are fewer than the ${headCount} heads; judge ${headCount} at least, one of each`,
    );
  const edgesOf = maskEdges(problem, shape);
  const atTiles = tileEdges(queries);
  const selected = new Int32Array(headCount * ofHead);
  let edgeCount = 0;
  const drawn = Array.from({ length: headCount }, (_, head) => {
    const wanted = { queries, rows: ofHead, seed, head };
    const { edges, random } = rowsOfHead(edgesOf(head), atTiles, wanted);
    selected.set([...edges, ...random], head * ofHead);
    selected.subarray(head * ofHead, (head + 1) * ofHead).sort();
    edgeCount += edges.size;
    return { drawn: random.length, among: queries - edges.size };
  });
  return {
    seed,
    rows: headCount * ofHead,
    of: headCount * queries,
    edges: edgeCount,
    random: headCount * ofHead - edgeCount,
    odds: faultOdds(drawn, queries),
    selection: { queries: selected, of: queries },
  };
}
