import { createHash } from 'node:crypto';
import { plainText } from '../words/index.js';

/** The commands whose work can be divided and resumed. */
export const campaignCommands = ['audit', 'check', 'conform', 'profile'] as const;
export type CampaignCommand = (typeof campaignCommands)[number];

/**
 * All facts that determine the results of a campaign, as plain JSON: equal requests give equal units
 * and, on a deterministic kernel, equal results.
 */
export interface CampaignRequest {
  readonly command: CampaignCommand;
  /** The version of flashproof. */
  readonly version: string;
}

/** A value as JSON returns it: without undefined members. */
export function plainJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** The leaves of a JSON value by their paths, as in kernel.settings.degree; lists are leaves. */
function leavesOf(value: unknown, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map([[path, JSON.stringify(value)]]);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return new Map(path === '' ? [] : [[path, '{}']]);
  return new Map(
    entries.flatMap(([key, item]) => [...leavesOf(item, path === '' ? key : `${path}.${key}`)]),
  );
}

/** The longest value that a message shows whole. */
const longestValue = 60;

function shown(value: string | undefined): string {
  if (value === undefined) return 'missing';
  return plainText(value.length > longestValue ? `${value.slice(0, longestValue)}…` : value);
}

/** The most differences that a message lists. */
const listedDifferences = 4;

/**
 * The differences of two requests in a clause, as in "seed is 1 there and 2 here"; null if they are the
 * same. The order of members does not matter.
 */
export function requestDifference(there: object, here: object): string | null {
  const [known, asked] = [leavesOf(there), leavesOf(here)];
  const paths = [...new Set([...known.keys(), ...asked.keys()])].filter(
    (path) => known.get(path) !== asked.get(path),
  );
  if (paths.length === 0) return null;
  const listed = paths
    .slice(0, listedDifferences)
    .map(
      (path) =>
        `${shown(path)} is ${shown(known.get(path))} there and ${shown(asked.get(path))} here`,
    );
  const more = paths.length - listed.length;
  return `${listed.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

/** SHA-256, hexadecimal, of a request: the same whatever the order of its members. */
export function requestFingerprint(request: object): string {
  const leaves = [...leavesOf(request)].sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(leaves)).digest('hex');
}
