import type { CheckReport } from '../report/json/index.js';
import { assembleCheck, missingCheckUnits, type AssemblyOptions } from './assemble-check.js';
import type { CheckRequest } from './check-request.js';
import { rejectUnfinished, type JoinedParts } from './join-parts.js';
import { describeShard } from './shard.js';

/** Why the kernel could not be run by the first shard that could not; null when all could. */
function firstExecution({ parts }: JoinedParts): string | null {
  const [failing] = parts.filter(({ execution }) => execution !== null);
  if (failing === undefined) return null;
  // A kernel that runs nowhere fails as it does in a check that is not divided.
  const everywhere = parts.every(({ execution }) => execution !== null);
  return everywhere ? failing.execution : `${describeShard(failing.shard)}: ${failing.execution}`;
}

/**
 * The report of a divided check.
 * @throws RequestError for a part that stopped before its end without its time being up
 */
export function joinCheck(joined: JoinedParts, options: AssemblyOptions = {}): CheckReport {
  const request = joined.request as CheckRequest;
  const { parts, records } = joined;
  const missing = missingCheckUnits({ request, records }, parts.length);
  rejectUnfinished(joined, missing);
  const late = parts.filter(({ outOfTime, shard }) => outOfTime && missing.has(shard.index));
  return assembleCheck(
    {
      request,
      records,
      outOfTime: late.length > 0,
      execution: firstExecution(joined),
      shards: {
        count: parts.length,
        included: parts.map(({ shard }) => shard.index),
        outOfTime: late.map(({ shard }) => shard.index),
      },
    },
    options,
  );
}
