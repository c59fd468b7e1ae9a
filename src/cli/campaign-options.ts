import type { Command } from 'commander';
import type { Shard } from '../campaign/index.js';

/** The options of commands whose work can be divided and resumed. */
export interface CampaignOptions {
  readonly shard?: string;
  readonly shardCount?: string;
  readonly journal?: string;
}

/** What is said of them below the help of each such command. */
export const campaignDetails = `
Shards together try exactly what one run tries; flashproof merge joins what
their --json or --journal writes to the report of one run. --shard auto takes
the shard from JOB_COMPLETION_INDEX (Kubernetes), SLURM_ARRAY_TASK_ID,
CI_NODE_INDEX (GitLab) or CIRCLE_NODE_INDEX, and how many there are from the
scheduler, --shard-count or FLASHPROOF_SHARDS. With --journal, the same command
again goes on where it was stopped, even by SIGKILL.
`;

/** Adds --shard, --shard-count and --journal to a command. */
export function addCampaignOptions(command: Command): Command {
  return command
    .option('--shard <i/n>', "do one of n shares of the work, from 1/n; auto: the scheduler's")
    .option('--shard-count <n>', 'of how many shards the scheduler numbers this one')
    .option('--journal <file>', 'keep what is done in a file, and go on from it');
}

/** A share of the work, or work that is kept in a journal, or both. */
export interface Campaign {
  /** Null for all of the work in one. */
  readonly shard: Shard | null;
  readonly journal: string | undefined;
}

/**
 * What the options and the environment ask for; null for work in one go. Says on stderr when a
 * scheduler numbers this process though nothing is divided.
 * @throws RequestError for what contradicts itself
 */
export async function readCampaign(
  { shard, shardCount, journal }: CampaignOptions,
  environment = process.env,
): Promise<Campaign | null> {
  const { resolveShard, undividedNotice } = await import('../campaign/index.js');
  const resolved = resolveShard({ shard, shardCount }, environment);
  if (resolved !== null) return { shard: resolved, journal };
  const notice = undividedNotice(environment);
  if (notice !== null) process.stderr.write(`flashproof: ${notice}\n`);
  return journal === undefined ? null : { shard: null, journal };
}
