import { RequestError } from '../request-error.js';
import { requestDifference, type CampaignRequest } from './campaign-request.js';
import type { PartFile } from './part.js';
import { shown } from './campaign-files.js';
import { describeShard } from './shard.js';
import type { UnitRecord } from './unit-log.js';

/** The parts of one campaign, every shard once, in the order of the shards. */
export interface JoinedParts {
  readonly request: CampaignRequest;
  readonly parts: readonly PartFile[];
  readonly records: ReadonlyMap<string, UnitRecord>;
}

/** The most missing shards that a message lists. */
const listedShards = 20;

/** @throws RequestError for missing shards; their number has no limit, so they are not all listed */
function rejectMissing(byIndex: ReadonlyMap<number, PartFile>, count: number): void {
  const missing = count - byIndex.size;
  if (missing === 0) return;
  const listed: number[] = [];
  for (let index = 1; listed.length < Math.min(missing, listedShards); index++)
    if (!byIndex.has(index)) listed.push(index);
  const more = missing > listed.length ? ` and ${missing - listed.length} more` : '';
  const which = missing === 1 ? `shard ${listed[0]} is` : `shards ${listed.join(', ')}${more} are`;
  throw new RequestError(`${which} missing of ${count}; name every part or journal`);
}

/**
 * Checks that parts are of one campaign and complete; their order does not matter.
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
  rejectMissing(byIndex, count);
  const parts = [...byIndex.values()].sort((a, b) => a.shard.index - b.shard.index);
  const records = new Map<string, UnitRecord>();
  for (const part of parts)
    for (const [unit, record] of part.records) {
      if (records.has(unit))
        throw new RequestError(
          `${part.path}: holds unit ${shown(unit)}, which another part has too; make the parts again`,
        );
      records.set(unit, record);
    }
  return { request: first.request, parts, records };
}

/**
 * The result of `make` on the results of units, which are unchecked until then and may have been edited.
 * @throws RequestError for units that flashproof did not write, in place of the error that they cause
 */
export async function fromUnits<T>({ parts }: JoinedParts, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const names = parts.map(({ path }) => path).join(', ');
    throw new RequestError(
      `${shown(names)}: what a unit found is not as flashproof wrote it; make the ${parts.length === 1 ? 'part' : 'parts'} again`,
    );
  }
}

/**
 * Refuses parts that stopped before their end without their time being up.
 * @param missing units without a known result, by their shard
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
