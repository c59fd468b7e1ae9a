import { RequestError } from '../request-error.js';
import { campaignCommands, requestFingerprint, type CampaignRequest } from './campaign-request.js';
import type { Shard } from './shard.js';
import type { CampaignHead } from './unit-log.js';

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isShard(value: unknown): value is Shard {
  if (!isObject(value)) return false;
  const { index, count } = value;
  return (
    Number.isSafeInteger(index) &&
    Number.isSafeInteger(count) &&
    1 <= (index as number) &&
    (index as number) <= (count as number)
  );
}

function isRequest(value: unknown): value is CampaignRequest {
  return (
    isObject(value) &&
    campaignCommands.some((command) => command === value['command']) &&
    typeof value['version'] === 'string'
  );
}

/**
 * The request and the shard of a journal's first line, or of a part.
 * @throws RequestError for another version of the format, or what was changed since it was written
 */
export function validHead(path: string, value: object): CampaignHead {
  const { schemaVersion, request, shard, fingerprint } = value as Readonly<Record<string, unknown>>;
  if (schemaVersion !== 1)
    throw new RequestError(
      `${path}: has schemaVersion ${JSON.stringify(schemaVersion)}, where this version of flashproof knows 1; use the version that wrote it`,
    );
  if (!isRequest(request) || !isShard(shard) || fingerprint !== requestFingerprint(request))
    throw new RequestError(
      `${path}: its request or its shard is not as flashproof wrote it; make it again`,
    );
  return { request, shard };
}
