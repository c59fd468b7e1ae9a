import { optionRows, type ParsedOptions } from './option-rows.js';

/** The options of commands whose work can be divided and resumed. */
export const campaignOptions = optionRows({
  shard: {
    argument: '<i/n>',
    description: "do one of n shares of the work, from 1/n; auto: the scheduler's",
    completes: ['auto'],
  },
  shardCount: {
    argument: '<n>',
    description: 'of how many shards the scheduler numbers this one',
  },
  journal: { argument: '<file>', description: 'keep what is done in a file, and go on from it' },
});

/** The campaign options as they are given. */
export type CampaignOptions = ParsedOptions<typeof campaignOptions>;

/** What is said of them below the help of each such command. */
export const campaignDetails = `
Shards together try exactly what one run tries; flashproof merge joins what
their --json or --journal writes to the report of one run. --shard auto takes
the shard from JOB_COMPLETION_INDEX (Kubernetes), SLURM_ARRAY_TASK_ID,
CI_NODE_INDEX (GitLab) or CIRCLE_NODE_INDEX, and how many there are from the
scheduler, --shard-count or FLASHPROOF_SHARDS. With --journal, the same command
again goes on where it was stopped, even by SIGKILL.
`;
