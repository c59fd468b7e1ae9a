import type { Problem, ProblemShape, Sequence } from '../../../src/problem/index.js';
import type { BackwardRecipe } from './recipe.js';

/** Some queries or keys of a head: `first` is counted over the head, not the sequence. */
export interface Stretch {
  readonly first: number;
  readonly count: number;
}

/** A block of keys and the blocks of queries that it visits, in the order visited. */
export interface KeyBlockVisits {
  readonly keys: Stretch;
  /** Index of the block in its sequence, from 0 on. */
  readonly index: number;
  readonly queryBlocks: readonly Stretch[];
}

function stretches(first: number, count: number, size: number): Stretch[] {
  return Array.from({ length: Math.ceil(count / size) }, (_, i) => ({
    first: first + i * size,
    count: Math.min(size, count - i * size),
  }));
}

/** The range of queries of a sequence that causal and window masks let see any key of a block. */
function seenBy(
  { causal, window }: Problem,
  { queries, keys }: Sequence,
  block: { readonly begin: number; readonly end: number },
): { readonly begin: number; readonly end: number } {
  const { left, right } = window ?? { left: -1, right: -1 };
  const reach = causal ? 0 : right;
  const shift = queries - keys;
  return {
    begin: causal || right >= 0 ? block.begin + shift - reach : 0,
    end: left >= 0 ? block.end + shift + left : queries,
  };
}

/**
 * The blocks of keys of a head in the order in which their tiles are added to dQ, each with its blocks of queries in the order of the
 * chains of dK and dV. Blocks of a packed sequence begin at its first query and key. Queries that causal and window masks
 * keep from all keys of a block are left out block by block.
 *
 * @param diagonal whether causal and window masks decide the visits; otherwise all blocks of a sequence meet
 */
export function keyBlockVisits(
  problem: Problem,
  { queries, keys }: Pick<ProblemShape, 'queries' | 'keys'>,
  { tiling, queryOrder, chainOrder }: Pick<BackwardRecipe, 'tiling' | 'queryOrder' | 'chainOrder'>,
  diagonal: boolean,
): readonly KeyBlockVisits[] {
  const whole: Sequence = { firstQuery: 0, queries, firstKey: 0, keys };
  return (problem.sequences ?? [whole]).flatMap((sequence) => {
    const queryBlocks = stretches(sequence.firstQuery, sequence.queries, tiling.queries);
    if (chainOrder === 'descending') queryBlocks.reverse();
    const visits = stretches(sequence.firstKey, sequence.keys, tiling.keys).map((block, index) => {
      if (!diagonal) return { keys: block, index, queryBlocks };
      const begin = block.first - sequence.firstKey;
      const seen = seenBy(problem, sequence, { begin, end: begin + tiling.keys });
      const from = Math.max(0, Math.floor(seen.begin / tiling.queries));
      const to = Math.max(from, Math.ceil(seen.end / tiling.queries));
      const isMet = ({ first }: Stretch): boolean => {
        const at = (first - sequence.firstQuery) / tiling.queries;
        return from <= at && at < to;
      };
      return { keys: block, index, queryBlocks: queryBlocks.filter(isMet) };
    });
    return queryOrder === 'descending' ? visits.reverse() : visits;
  });
}
