import {
  contractOfLaunch,
  type LaunchContract,
  openContract,
} from '../launch/contract-of-launch.js';
import { inputPlaces } from '../launch/contract-places.js';
import type { OpenedLaunch } from '../launch/open-launch.js';
import type { ComparedRun } from './certify-same.js';
import type { FollowedRun } from './followed-run.js';

/** Whether a launch says itself what its tensors are. */
function saysItself({ posed, file }: OpenedLaunch): boolean {
  return posed !== null || file.contract !== null;
}

/**
 * What a launch's tensors are; null where nothing says so.
 *
 * @param contractFile in place of what the launch says
 */
export async function contractOf(
  opened: OpenedLaunch,
  contractFile: string | undefined,
): Promise<LaunchContract | null> {
  const given = contractFile === undefined ? null : await openContract(contractFile);
  return given !== null || saysItself(opened) ? contractOfLaunch(opened, given) : null;
}

/** A run as it is compared. @param contractFile as for `contractOf` */
export async function comparedRun(
  run: FollowedRun,
  contractFile: string | undefined,
): Promise<ComparedRun> {
  const { opened } = run.result;
  const contract = await contractOf(opened, contractFile);
  if (contract === null) return { run, told: null };
  const given = contractFile === undefined ? null : await openContract(contractFile);
  return { run, told: { contract, places: await inputPlaces(opened, given) } };
}

/** The run to compare with: a file that says what the tensors are counts where the launch itself does not say it. */
export function otherRun(run: FollowedRun, contractFile: string | undefined): Promise<ComparedRun> {
  return comparedRun(run, saysItself(run.result.opened) ? undefined : contractFile);
}
