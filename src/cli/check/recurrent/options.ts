import { RequestError } from '../../../request-error.js';
import { rejectClashes } from '../../options/given-options.js';
import { flagOf, isGiven, negatedFlag } from '../../options/option-rows.js';
import { rejectThreadClashes } from '../limits.js';
import { type CheckCommandOptions, checkOptions } from '../options.js';

/** The options that a check of linear attention takes. */
const takenOptions: readonly (keyof CheckCommandOptions)[] = [
  ...(['contract', 'kernel', 'exec', 'set', 'variant', 'timeout', 'threads'] as const),
  ...(['shard', 'shardCount', 'journal'] as const),
  ...(['property', 'regime', 'runs', 'seed', 'seconds', 'bail', 'strict'] as const),
  ...(['promises', 'promise', 'formats', 'dims', 'groupSizes'] as const),
  ...(['gradients', 'deterministic'] as const),
  ...(['list', 'replay', 'saveDir', 'json', 'junit', 'quiet'] as const),
];

/** @throws RequestError for options of attention, and for those that do not go together */
export function rejectRecurrentOptions(options: CheckCommandOptions): void {
  const keys = Object.keys(checkOptions) as (keyof CheckCommandOptions)[];
  const stray = keys.find(
    (key) => !takenOptions.includes(key) && isGiven(checkOptions[key], options[key]),
  );
  if (stray !== undefined)
    throw new RequestError(
      `${options[stray] === false ? negatedFlag(stray) : flagOf(stray)} is for attention; leave it out of a check with --contract recurrent`,
    );
  if (options.list === true) return;
  rejectThreadClashes(options);
  rejectClashes(checkOptions, options);
}
