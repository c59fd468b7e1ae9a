import {
  createUnitLog,
  openJournal,
  wholeShard,
  type CampaignRequest,
  type UnitLog,
} from '../campaign/index.js';
import { RequestError } from '../request-error.js';
import type { Campaign } from './campaign-options.js';

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
