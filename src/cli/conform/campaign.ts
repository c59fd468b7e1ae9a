import {
  assembleConform,
  conformRequest,
  conformShard,
  describeShard,
  partDocument,
  runConformUnits,
  secondsOf,
  wholeShard,
  type ConformShard,
  type Shard,
} from '../../campaign/index.js';
import { prepareConformance } from '../../conform/index.js';
import { openLog } from '../options/campaign.js';
import type { Campaign } from '../options/campaign.js';
import type { ConformCommandOptions } from './options.js';
import { publishConformance } from './publish.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import { toolVersion } from '../tool-version.js';
import { writeJson } from '../files/publish.js';

/** The verdict on one shard. */
function verdictOf({ units, differing }: ConformShard, shard: Shard) {
  const of = `${units} ${units === 1 ? 'unit' : 'units'} of work, ${describeShard(shard)} only`;
  const pass = differing.length === 0;
  return {
    pass,
    sentence: pass
      ? `PASS: no model differs from the silicon (${of}).`
      : `FAIL: ${differing.join(', ')} ${differing.length === 1 ? 'differs' : 'differ'} from the silicon (${of}).`,
  };
}

/**
 * Compares a shard of the blocks, or all of them with a journal, prints what was found and writes the
 * part or, of all, the result. Returns whether all models agree.
 * @throws RequestError for a request that cannot be carried out, and a journal of another
 */
export async function runConformCampaign(
  instructions: readonly string[],
  campaign: Campaign,
  threads: number,
  { exhaustive = false, captures, seed, json, quiet }: ConformCommandOptions,
): Promise<boolean> {
  const scope = { instructions, exhaustive, seed };
  const prepared = await prepareConformance(
    captures === undefined ? scope : { ...scope, captures },
  );
  const request = conformRequest(prepared, { folder: captures ?? null, version: toolVersion() });
  const log = openLog(campaign, request);
  const progress = createPeriodicProgress('conform');
  const { shard } = campaign;
  try {
    await runConformUnits(prepared, shard ?? wholeShard, log, threads, (done, total) =>
      progress.update(done / total),
    );
  } finally {
    progress.done();
    log.close();
  }
  const { records } = log;
  if (shard === null) {
    const conformance = assembleConform(prepared.plan, records);
    await publishConformance(conformance, secondsOf(records.values()), { json, quiet });
    return conformance.pass;
  }
  const verdict = verdictOf(conformShard(prepared.plan, records), shard);
  const part = { request, shard, records, outOfTime: false, execution: null };
  if (json !== undefined) await writeJson(json, partDocument(part, verdict));
  if (json !== '-') process.stdout.write(`${verdict.sentence}\n`);
  return verdict.pass;
}
