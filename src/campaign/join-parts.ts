import { RequestError } from '../request-error.js';
import { requestDifference, type CampaignRequest } from './campaign-request.js';
import type { PartFile } from './part.js';
import { describeShard } from './shard.js';
import type { UnitRecord } from './unit-log.js';

/** The parts of one campaign, every shard once, in the order of the shards. */
export interface JoinedParts {
  readonly request: CampaignRequest;
  readonly parts: readonly PartFile[];
  readonly records: ReadonlyMap<string, UnitRecord>;
}

/**
 * Holds parts to be of one campaign and complete; their order does not matter.
 * @throws RequestError, with the files' names, for parts of different requests or counts, a shard that
 * is missing and one that is there twice
 */
export function joinParts(given: readonly PartFile[]): JoinedParts {
  const [first] = given;
  if (first === undefined) throw new RequestError('there is nothing to merge; name parts');
  const { count } = first.shard;
  const byIndex = new Map<number, PartFile>();
  for (const part of given) {
    const { path, shard, request } = part;
    if (shard.count !== count)
      throw new RequestError(
        `${path} is ${describeShard(shard)}, but ${first.path} is ${describeShard(first.shard)}; merge parts of one division`,
      );
    const difference = requestDifference(first.request, request);
    if (difference !== null)
      throw new RequestError(
        `${path} is a part of another request than ${first.path}: ${difference}; merge parts of one`,
      );
    const twin = byIndex.get(shard.index);
    if (twin !== undefined)
      throw new RequestError(
        `${describeShard(shard)} is in ${twin.path} and in ${path}; leave out one`,
      );
    byIndex.set(shard.index, part);
  }
  const missing = Array.from({ length: count }, (_, i) => i + 1).filter((i) => !byIndex.has(i));
  if (missing.length > 0) {
    const which =
      missing.length === 1 ? `shard ${missing[0]} is` : `shards ${missing.join(', ')} are`;
    throw new RequestError(`${which} missing of ${count}; name every part or journal`);
  }
  const parts = [...byIndex.values()].sort((a, b) => a.shard.index - b.shard.index);
  const records = new Map<string, UnitRecord>();
  for (const part of parts)
    for (const [unit, record] of part.records) {
      if (records.has(unit))
        throw new RequestError(
          `${part.path}: holds unit ${unit}, which another part has too; make the parts again`,
        );
      records.set(unit, record);
    }
  return { request: first.request, parts, records };
}

/**
 * Refuses parts that stopped before their end without their time being up.
 * @param missing units of which nothing is known, by the shard that they fall to
 * @throws RequestError, with the file's name
 */
export function rejectUnfinished(
  { parts }: JoinedParts,
  missing: ReadonlyMap<number, number>,
): void {
  for (const { path, shard, outOfTime, execution } of parts) {
    const count = missing.get(shard.index) ?? 0;
    if (count === 0 || outOfTime || execution !== null) continue;
    throw new RequestError(
      `${path}: ${describeShard(shard)} stopped ${count} ${count === 1 ? 'unit' : 'units'} before its end; run its command again with the same --journal`,
    );
  }
}
