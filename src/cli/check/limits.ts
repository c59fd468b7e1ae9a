import type { CheckLimitsRequest } from '../../jobs/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import type { Campaign } from '../options/campaign.js';
import { parsePositive } from '../options/parse-values.js';
import type { CheckCommandOptions } from './options.js';

/** @throws RequestError for several threads where one tries all problems */
export function rejectThreadClashes({
  exec,
  launch,
  bail,
  threads = 1,
}: CheckCommandOptions): void {
  if (threads !== 1 && launch !== undefined)
    throw new RequestError(
      'the compiled kernel of --launch gets its problems one after the other; leave out --threads',
    );
  if (threads !== 1 && exec !== undefined)
    throw new RequestError(
      'the command of --exec is one process, which gets its problems one after the other; leave out --threads',
    );
  if (threads !== 1 && bail === true)
    throw new RequestError(
      '--bail stops at the first violation, which one thread looks for; leave out --threads',
    );
}

/** @throws RequestError for options that have no meaning for a check in shards or sittings */
export function rejectCampaignClashes(
  { bail, replay, strict, threads = 1 }: CheckCommandOptions,
  { shard }: Campaign,
): void {
  if (threads !== 1)
    throw new RequestError(
      'a shard, and a check with --journal, is tried by one thread; leave out --threads, and start as many shards as there are cores',
    );
  const clash = bail === true ? '--bail' : replay === undefined ? null : '--replay';
  if (clash !== null)
    throw new RequestError(
      `${clash} goes with neither shards nor --journal; leave out one (shards do not know what others find)`,
    );
  if (strict === true && shard !== null)
    throw new RequestError(
      '--strict is for the report of all shards, since none tries every property; give it to flashproof merge',
    );
}

/**
 * The problems and limits of a check, of whatever contract.
 * @param usualSeed the seed where the options name none; null to draw one
 * @throws RequestError for an option that does not parse
 */
export function readLimits(
  { runs, seed, seconds, bail = false }: CheckCommandOptions,
  usualSeed: number | null,
): CheckLimitsRequest {
  return {
    runs: parseWhole(runs, '--runs', 1),
    seed:
      seed === undefined
        ? (usualSeed ?? Math.floor(Math.random() * 2 ** 31))
        : parseWhole(seed, '--seed', Number.MIN_SAFE_INTEGER),
    seconds: parsePositive(seconds, '--seconds'),
    bail,
  };
}
