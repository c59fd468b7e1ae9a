import { RequestError } from '../request-error.js';
import { parseShard, parseShardCount, type Shard } from './shard.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Environment variables in which a scheduler gives each process of a group its number, and the number of processes. */
interface Scheduler {
  readonly name: string;
  /** The variable with the process's number. */
  readonly index: string;
  /** The variable with the number of the first process, or that number itself. */
  readonly first: string | number;
  /** The variable with the step from one number to the next; null for steps of 1. */
  readonly step: string | null;
  /** The variable with the number of processes; null if the scheduler does not give it. */
  readonly count: string | null;
  /** The variable with the last number, if there is one: it reveals numbers that are not in steps. */
  readonly last: string | null;
}

/**
 * Sources: the Kubernetes documentation on indexed jobs, Slurm's sbatch manual (job arrays), GitLab's
 * predefined CI/CD variables, CircleCI's built-in environment variables.
 */
const schedulers: readonly Scheduler[] = [
  {
    name: 'a Kubernetes indexed job',
    index: 'JOB_COMPLETION_INDEX',
    first: 0,
    step: null,
    count: null,
    last: null,
  },
  {
    name: 'a Slurm array',
    index: 'SLURM_ARRAY_TASK_ID',
    first: 'SLURM_ARRAY_TASK_MIN',
    step: 'SLURM_ARRAY_TASK_STEP',
    count: 'SLURM_ARRAY_TASK_COUNT',
    last: 'SLURM_ARRAY_TASK_MAX',
  },
  {
    name: 'GitLab',
    index: 'CI_NODE_INDEX',
    first: 1,
    step: null,
    count: 'CI_NODE_TOTAL',
    last: null,
  },
  {
    name: 'CircleCI',
    index: 'CIRCLE_NODE_INDEX',
    first: 0,
    step: null,
    count: 'CIRCLE_NODE_TOTAL',
    last: null,
  },
];

/** The variable that gives the number of shards if the scheduler does not, or confirms it. */
const countVariable = 'FLASHPROOF_SHARDS';

/** Options of the command line for shards. */
export interface ShardRequest {
  /** The value of --shard: index/count, or auto. */
  readonly shard?: string | undefined;
  /** The value of --shard-count. */
  readonly shardCount?: string | undefined;
}

/** The value of a variable; the empty text if it is not set. */
function textOf(environment: Environment, name: string): string {
  return environment[name] ?? '';
}

function isSet(environment: Environment, name: string): boolean {
  return textOf(environment, name) !== '';
}

/** @throws RequestError for a variable that is no whole number */
function wholeNumber(environment: Environment, name: string): number {
  const text = textOf(environment, name);
  if (!/^\d+$/.test(text))
    throw new RequestError(
      `${name} is ${JSON.stringify(text)}, no whole number; set it, or give --shard index/count`,
    );
  return Number(text);
}

/** The placement that a scheduler gives: the process's number from 1, and the number of processes, if known. */
interface Placement {
  readonly scheduler: Scheduler;
  readonly index: number;
  readonly count: number | null;
}

/** @throws RequestError for inconsistent numbers */
function placementBy(scheduler: Scheduler, environment: Environment): Placement {
  const { index, first, step, count, last } = scheduler;
  const number = (name: string) => wholeNumber(environment, name);
  const start = typeof first === 'number' ? first : number(first);
  const stride = step !== null && isSet(environment, step) ? number(step) : 1;
  const place = (number(index) - start) / stride;
  const total = count === null || !isSet(environment, count) ? null : number(count);
  const end = last !== null && isSet(environment, last) ? number(last) : null;
  const isGapless = total === null || end === null || start + (total - 1) * stride === end;
  if (!Number.isInteger(place) || place < 0 || !isGapless)
    throw new RequestError(
      `${index} is ${number(index)}, of numbers that are not in even steps; number the tasks from 1 to n, or give --shard index/count`,
    );
  if (total !== null && place >= total)
    throw new RequestError(
      `${index} is ${number(index)}, but ${count!} is ${total}; correct one, or give --shard index/count`,
    );
  return { scheduler, index: place + 1, count: total };
}

/**
 * The one placement in the environment.
 * @throws RequestError for none, and for two
 */
function placementIn(environment: Environment): Placement {
  const found = schedulers
    .filter(({ index }) => isSet(environment, index))
    .map((scheduler) => placementBy(scheduler, environment));
  const [only, other] = found;
  if (only === undefined)
    throw new RequestError(
      `the environment does not say which shard this is; set ${schedulers.map(({ index }) => index).join(', or ')}, or give --shard index/count`,
    );
  if (other !== undefined)
    throw new RequestError(
      `${only.scheduler.index} and ${other.scheduler.index} both say which shard this is; unset one, or give --shard index/count`,
    );
  return only;
}

/** The requested number of shards, and its source; null if none was requested. */
function askedCount(
  { shardCount }: ShardRequest,
  environment: Environment,
): { readonly count: number; readonly by: string } | null {
  if (shardCount !== undefined)
    return { count: parseShardCount(shardCount, '--shard-count'), by: '--shard-count' };
  if (!isSet(environment, countVariable)) return null;
  return {
    count: parseShardCount(textOf(environment, countVariable), countVariable),
    by: countVariable,
  };
}

/** The shard by --shard index/count. @throws RequestError where --shard-count is another count */
function shardByFlag(text: string, { shardCount }: ShardRequest): Shard {
  const shard = parseShard(text);
  if (shardCount === undefined) return shard;
  const count = parseShardCount(shardCount, '--shard-count');
  if (count !== shard.count)
    throw new RequestError(
      `--shard is ${text}, but --shard-count is ${shardCount}; leave out --shard-count`,
    );
  return shard;
}

/**
 * The shard of the work for this process; null for all of it. `--shard index/count` wins over the
 * environment, which is read only where `--shard auto`, `--shard-count` or FLASHPROOF_SHARDS says so:
 * schedulers number processes for reasons of their own, such as a matrix of kernels, and a kernel of
 * which only a part was tried must never look as if all of it was.
 * @throws RequestError for contradictory or missing values
 */
export function resolveShard(request: ShardRequest, environment: Environment): Shard | null {
  const { shard } = request;
  if (shard !== undefined && shard !== 'auto') return shardByFlag(shard, request);
  const asked = askedCount(request, environment);
  if (shard === undefined && asked === null) return null;
  const { scheduler, index, count: total } = placementIn(environment);
  if (total !== null && asked !== null && total !== asked.count)
    throw new RequestError(
      `${asked.by} is ${asked.count}, but ${scheduler.count!} is ${total}; correct one, or give --shard index/count`,
    );
  const count = total ?? asked?.count;
  if (count === undefined)
    throw new RequestError(
      `${scheduler.index} says which shard this is, but not of how many; give --shard-count, or set ${countVariable}`,
    );
  if (index > count)
    throw new RequestError(
      `${scheduler.index} is ${textOf(environment, scheduler.index)}, beyond the ${count} shards of ${asked?.by ?? scheduler.count!}; correct one, or give --shard index/count`,
    );
  return { index, count };
}

/**
 * The notice to a user whose process a scheduler has numbered though nothing was divided; null if there
 * is none.
 */
export function undividedNotice(environment: Environment): string | null {
  const numbered = schedulers.find(
    ({ index, count }) =>
      isSet(environment, index) && (count === null || Number(environment[count] ?? 1) > 1),
  );
  return numbered === undefined
    ? null
    : `${numbered.index} is set, by ${numbered.name}, but everything is tried here; --shard auto divides the work`;
}
