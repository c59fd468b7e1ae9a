import { type AttentionContract, contractOfLaunch } from '../launch/contract-of-launch.js';
import { type InputPlaces, inputPlaces } from '../launch/contract-places.js';
import { openContract } from '../launch/open-contract.js';
import type { OpenedLaunch } from '../launch/open-launch.js';
import type { RecurrentContract } from '../launch/recurrent-contract.js';
import type { FollowedRun } from './followed-run.js';

/** What the tensors of a launch of attention are, and where the elements of its inputs lie. */
export interface ToldAttention {
  readonly kind: 'attention';
  readonly contract: AttentionContract;
  readonly places: readonly InputPlaces[];
}

/** What the tensors of a launch of a recurrence are. */
export interface ToldRecurrence {
  readonly kind: 'recurrent';
  readonly contract: RecurrentContract;
}

/** What a launch's tensors are. */
export type ToldLaunch = ToldAttention | ToldRecurrence;

/** A followed run, and what its tensors are; null where nothing says so. */
export interface ToldRun {
  readonly run: FollowedRun;
  readonly told: ToldLaunch | null;
}

/** Whether a launch says itself what its tensors are. */
function saysItself({ posed, file }: OpenedLaunch): boolean {
  return posed !== null || file.contract !== null;
}

/**
 * A run with what its launch says of its tensors.
 *
 * @param contractFile in place of what the launch says
 * @throws RequestError for a contract that does not fit the launch's tensors
 */
export async function tellContract(
  run: FollowedRun,
  contractFile: string | undefined,
): Promise<ToldRun> {
  const { opened } = run.result;
  const given = contractFile === undefined ? null : await openContract(contractFile);
  if (given === null && !saysItself(opened)) return { run, told: null };
  const contract = await contractOfLaunch(opened, given);
  if (contract.kind === 'recurrent') return { run, told: { kind: 'recurrent', contract } };
  const places = await inputPlaces(opened, given);
  return { run, told: { kind: 'attention', contract, places } };
}

/** The run to compare with: a file that says what the tensors are counts where the launch itself does not say it. */
export function otherRun(run: FollowedRun, contractFile: string | undefined): Promise<ToldRun> {
  return tellContract(run, saysItself(run.result.opened) ? undefined : contractFile);
}
