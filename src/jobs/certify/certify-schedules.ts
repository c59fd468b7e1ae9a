import type { SameOutput, ScheduleCertificate } from './certificate.js';
import { certifySame } from './certify-same.js';
import { followOpened, type FollowedRun } from './followed-run.js';
import type { RunRequest, RunResult } from '../launch/run-launch-file.js';
import { findingWeight } from '../../machine/index.js';

/** An output in some schedules, and in one more. */
function worse(
  known: ScheduleCertificate['outputs'][number],
  { other, lost, otherWithEqualBits, parting }: SameOutput,
  schedule: string,
): ScheduleCertificate['outputs'][number] {
  return {
    ...known,
    other: Math.max(known.other, other),
    lost: Math.max(known.lost, lost),
    otherWithEqualBits: Math.max(known.otherWithEqualBits, otherWithEqualBits),
    schedules: known.schedules + (other === 0 ? 0 : 1),
    first: known.first ?? (parting && { schedule, ...parting }),
  };
}

/** Whether a run comes to its end, and nothing illegal was found. */
function isSound({ run, findings }: RunResult): boolean {
  return run.isComplete && findings.every(({ kind }) => findingWeight(kind) !== 'illegal');
}

/**
 * Compares the expressions of a run with those of the same launch in random schedules, element by element: warps and clusters take
 * turns by chance, so that atomics come in another order. Equal expressions have equal bits; others may, and count all the same.
 *
 * @param count of schedules, `random:1` and on
 */
export async function certifySchedules(
  followed: FollowedRun,
  request: RunRequest,
  count: number,
  progress: (share: number) => void,
): Promise<ScheduleCertificate> {
  const { chain, launches, outputs } = followed;
  let known = outputs.map(({ tensor }): ScheduleCertificate['outputs'][number] => {
    const none = { other: 0, lost: 0, otherWithEqualBits: 0, schedules: 0, first: null };
    return { name: tensor, rows: 0, ...none };
  });
  const failed: string[] = [];
  for (let i = 1; i <= count; i++) {
    const schedule = `random:${i}`;
    const again = await followOpened(chain, { ...request, schedule, starts: schedule }, (share) =>
      progress((i - 1 + share) / count),
    );
    // What the first run is refuted for already is no news of a schedule.
    if (launches.every(isSound) && !again.launches.every(isSound)) failed.push(schedule);
    // Elements of one launch stand for themselves, whatever its tensors are.
    const same = certifySame({ run: followed, told: null }, { run: again, told: null });
    known = known.map((output, at) =>
      worse({ ...output, rows: same.outputs[at].rows }, same.outputs[at], schedule),
    );
  }
  return { runs: count, failed, outputs: known };
}
