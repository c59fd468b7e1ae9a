import { findHarmlessRaces, racingLoads } from '../../meaning/certify/index.js';
import { MarkedReads } from '../../meaning/record/index.js';
import type { Finding } from '../../machine/index.js';
import type { LaunchFinding } from '../launch/launch-findings.js';
import type { RunRequest } from '../launch/run-launch-file.js';
import { followOpened, type FollowedRun } from './followed-run.js';

function titleOf({ kind, accesses }: Finding): string {
  return [kind, ...accesses.map(({ site, who }) => `${site} ${who}`)].join();
}

/**
 * The races of a run of which it is proven that they change no output (`findHarmlessRaces`): the launch runs once more with its
 * racing loads marked. None where there is no race of a load, and where an output is not followed.
 */
export async function harmlessRacesOf(
  { result, unfollowed }: FollowedRun,
  request: RunRequest,
  progress: (share: number) => void,
): Promise<readonly LaunchFinding[]> {
  const sites = racingLoads(result.findings);
  if (sites.size === 0 || unfollowed.length > 0) return [];
  const marked: MarkedReads[] = [];
  const again = await followOpened(result.opened, request, progress, (recorder) => {
    const reads = new MarkedReads(recorder, (site) => sites.has(site));
    marked.push(reads);
    return reads.tracer;
  });
  const outputs = again.outputs.map(({ values }) => values);
  const harmless = marked.flatMap((reads) =>
    findHarmlessRaces(again.result.findings, reads, outputs),
  );
  const titles = new Set(harmless.map(titleOf));
  return result.findings.filter((finding) => titles.has(titleOf(finding)));
}
