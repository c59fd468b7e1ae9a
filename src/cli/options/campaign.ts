import {
  createUnitLog,
  openJournal,
  resolveShard,
  undividedNotice,
  wholeShard,
  type CampaignRequest,
  type Shard,
  type UnitLog,
} from '../../campaign/index.js';
import { RequestError } from '../../request-error.js';
import type { CampaignOptions } from './shared-options.js';

/** A share of the work, a journal that keeps it, or both. */
export interface Campaign {
  /** The share; null for all of the work in one. */
  readonly shard: Shard | null;
  readonly journal: string | undefined;
}

/**
 * The campaign that the options and the environment ask for; null for work in one go. Warns on stderr
 * when a scheduler numbers this process though nothing is divided.
 * @throws RequestError for contradictory options
 */
export function readCampaign(
  { shard, shardCount, journal }: CampaignOptions,
  environment = process.env,
): Campaign | null {
  const resolved = resolveShard({ shard, shardCount }, environment);
  if (resolved !== null) return { shard: resolved, journal };
  const notice = undividedNotice(environment);
  if (notice !== null) process.stderr.write(`flashproof: ${notice}\n`);
  return journal === undefined ? null : { shard: null, journal };
}

/**
 * The log of a campaign: its journal, or one that ends with the process.
 * @throws RequestError for a journal of another request, or that cannot be read or written
 */
export function openLog({ shard, journal }: Campaign, request: CampaignRequest): UnitLog {
  if (journal === undefined) return createUnitLog([], null);
  if (journal === '-')
    throw new RequestError('--journal is "-"; name a file, which the same command can go on from');
  return openJournal(journal, { request, shard: shard ?? wholeShard });
}
