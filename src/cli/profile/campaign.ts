import {
  describeShard,
  partDocument,
  profileRequest,
  runProfileUnits,
  secondsOf,
  wholeShard,
  type ProfileRequest,
} from '../../campaign/index.js';
import { RequestError } from '../../request-error.js';
import { openLog } from '../options/campaign.js';
import type { Campaign } from '../options/campaign.js';
import type { ProfileCommandOptions } from './options.js';
import { publishProfile } from './publish.js';
import type { PeriodicProgress } from '../terminal/progress.js';
import { toolVersion } from '../tool-version.js';
import { writeJson } from '../files/publish.js';

/** @throws RequestError for a plot of a part, which is plotted when it is merged */
function rejectPlot({ shard }: Campaign, { svg }: ProfileCommandOptions): void {
  if (shard !== null && svg !== undefined)
    throw new RequestError(
      '--svg plots a whole profile; leave it out, and give it to flashproof merge',
    );
}

/**
 * Measures a shard of a sweep, or all of it with a journal, prints what was found and writes the part
 * or, of all, the profile.
 * @throws RequestError for a request that cannot be carried out, and a journal of another
 */
export async function runProfileCampaign(
  campaign: Campaign,
  asked: Omit<ProfileRequest, 'command' | 'version'>,
  threads: number,
  progress: PeriodicProgress,
  options: ProfileCommandOptions,
): Promise<void> {
  rejectPlot(campaign, options);
  const { json, quiet } = options;
  const request = profileRequest({ version: toolVersion(), ...asked });
  const log = openLog(campaign, request);
  const { shard } = campaign;
  const { records } = log;
  const { units, profile } = await runProfileUnits(request, shard ?? wholeShard, log, {
    threads,
    progress: (done, total) => progress.update(done / total),
  }).finally(() => {
    progress.done();
    log.close();
  });
  if (shard === null) {
    const { range, architecture } = request;
    const seconds = secondsOf(records.values());
    return publishProfile(profile!, { range, architecture, seconds }, options);
  }
  const sentence = `Measured ${records.size} of ${units} units of work, ${describeShard(shard)}; flashproof merge joins the parts.`;
  const part = { request, shard, records, outOfTime: false, execution: null };
  if (json !== undefined) await writeJson(json, partDocument(part, { pass: true, sentence }));
  if (json !== '-' && quiet !== true) process.stdout.write(`${sentence}\n`);
}
