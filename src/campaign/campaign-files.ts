import { readFileSync, statSync } from 'node:fs';
import { plainText } from '../words/index.js';
import { RequestError } from '../request-error.js';
import { campaignCommands, type CampaignRequest, requestFingerprint } from './campaign-request.js';
import type { Shard } from './shard.js';
import type { CampaignHead } from './unit-log.js';

/** Larger files are refused unread: a text of them could not be held, and no campaign writes as much. */
const mostBytes = 2 ** 28;

/** The most characters of a value from a file that a message repeats. */
const mostCharacters = 80;

/** A value from a file as a message of one line repeats it. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing');
  return plainText(text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text);
}

/** A path as a message of one line repeats it. */
export function shownPath(path: string): string {
  return plainText(path);
}

/**
 * The bytes of a regular file.
 * @throws RequestError for a pipe, which to read would wait for a writer, any other that is no regular
 * file, one of more than 256 MiB, and one that cannot be read
 */
export function readWholeFile(path: string): Buffer {
  const where = shownPath(path);
  try {
    const kind = statSync(path);
    if (kind.isDirectory())
      throw new RequestError(`${where}: cannot be read (EISDIR): it is a folder; name a file`);
    if (!kind.isFile())
      throw new RequestError(`${where}: is a pipe, socket or device; save to a regular file first`);
    if (kind.size > mostBytes)
      throw new RequestError(
        `${where}: has ${kind.size} bytes, above the limit of ${mostBytes}; use more shards`,
      );
    return readFileSync(path);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new RequestError(`${where}: cannot be read (${code ?? message}); check the path`);
  }
}

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
 * @throws RequestError for another version of the format, or a file that was changed since it was written
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
