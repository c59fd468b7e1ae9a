import { RequestError } from '../request-error.js';
import { campaignCommands, requestFingerprint, type CampaignRequest } from './campaign-request.js';
import { shown, shownPath } from './read-whole-file.js';
import type { Shard } from './shard.js';
import type { CampaignHead } from './unit-log.js';

/** The most values within one another that a head has; much deeper ones would overflow the stack. */
const mostNested = 16;

function isNestedBelow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((item) => isNestedBelow(item, depth - 1));
}

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
export function validHead(path: string, value: unknown): CampaignHead {
  const where = shownPath(path);
  if (!isObject(value)) throw new RequestError(`${where}: its head is no object; make it again`);
  const { schemaVersion, request, shard, fingerprint } = value;
  if (![schemaVersion, request, shard].every((member) => isNestedBelow(member, mostNested)))
    throw new RequestError(`${where}: its head is nested too deeply; make it again`);
  if (schemaVersion !== 1)
    throw new RequestError(
      `${where}: has schemaVersion ${shown(schemaVersion)}, where this version of flashproof knows 1; use the version that wrote it`,
    );
  if (!isRequest(request) || !isShard(shard) || fingerprint !== requestFingerprint(request))
    throw new RequestError(
      `${where}: its request or its shard is not as flashproof wrote it; make it again`,
    );
  return { request, shard };
}
