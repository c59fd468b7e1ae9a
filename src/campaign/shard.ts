import { RequestError } from '../request-error.js';

/** One of `count` parts that work is divided into. */
export interface Shard {
  /** Number of the part, from 1 to `count`. */
  readonly index: number;
  readonly count: number;
}

/** The whole work in one part. */
export const wholeShard: Shard = { index: 1, count: 1 };

/** The most parts; a larger number is taken for a typing error. */
const mostShards = 100_000;

/** A shard in words, as in "shard 2 of 3". */
export function describeShard({ index, count }: Shard): string {
  return `shard ${index} of ${count}`;
}

/**
 * Number of shards that work is divided into, from text.
 * @throws RequestError, naming `option`, for anything but a whole number from 1
 */
export function parseShardCount(text: string, option: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > mostShards)
    throw new RequestError(
      `${option} is ${JSON.stringify(text)}; give a whole number from 1 to ${mostShards}`,
    );
  return count;
}

/**
 * A shard written as index/count, from 1/1.
 * @throws RequestError for anything else
 */
export function parseShard(text: string): Shard {
  const [, index, count] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (!(shard.index >= 1 && shard.index <= shard.count && shard.count <= mostShards))
    throw new RequestError(
      `--shard is ${JSON.stringify(text)}; give index/count from 1/1, as in 2/3, or auto`,
    );
  return shard;
}

/** The shard, from 1, of the unit at a position, from 0, among all units in their order. */
function shardOf(position: number, count: number): number {
  return (position % count) + 1;
}

/** Whether the unit at a position, from 0, among all units in their order belongs to the shard. */
export function hasUnit({ index, count }: Shard, position: number): boolean {
  return shardOf(position, count) === index;
}

/** Number of units at some positions that belong to each shard; shards without any are left out. */
export function countByShard(positions: Iterable<number>, count: number): Map<number, number> {
  const counts = new Map<number, number>();
  for (const position of positions) {
    const index = shardOf(position, count);
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  return counts;
}
