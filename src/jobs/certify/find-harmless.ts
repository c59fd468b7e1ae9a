import { findHarmlessRaces, racingLoads } from '../../meaning/certify/index.js';
import { MarkedReads } from '../../meaning/record/index.js';
import type { Finding } from '../../machine/index.js';
import type { LaunchFinding } from '../launch/launch-findings.js';
import { chainLaunches, type OpenedChain } from '../launch/open-chain.js';
import type { RunRequest, RunResult } from '../launch/run-launch-file.js';
import { followOpened, type FollowedRun } from './followed-run.js';

function titleOf({ kind, accesses }: Finding): string {
  return [kind, ...accesses.map(({ site, who }) => `${site} ${who}`)].join();
}

/**
 * A launch by itself, with the tensors as it found them: of a chain, where another launch may read what it writes, all are its outputs.
 */
function alone({ chain }: FollowedRun, { opened }: RunResult): OpenedChain {
  if (chain.launches.length === 1) return chain;
  const { launch } = opened;
  const outputs = launch.tensors.map(({ name }) => ({ name, as: null, format: null }));
  return chainLaunches([{ ...opened, launch: { ...launch, outputs } }]);
}

/**
 * The races of a launch of which it is proven that they change no output (`findHarmlessRaces`): it runs once more with its
 * racing loads marked. None where there is no race of a load, and where an output is not followed.
 */
export async function harmlessRacesOf(
  followed: FollowedRun,
  result: RunResult,
  request: RunRequest,
  progress: (share: number) => void,
): Promise<readonly LaunchFinding[]> {
  const sites = racingLoads(result.findings);
  if (sites.size === 0) return [];
  const marked: MarkedReads[] = [];
  const again = await followOpened(alone(followed, result), request, progress, (recorder) => {
    const reads = new MarkedReads(recorder, (site) => sites.has(site));
    marked.push(reads);
    return reads.tracer;
  });
  if (again.unfollowed.length > 0) return [];
  const outputs = again.outputs.map(({ values }) => values);
  const harmless = marked.flatMap((reads) =>
    findHarmlessRaces(again.result.findings, reads, outputs),
  );
  const titles = new Set(harmless.map(titleOf));
  return result.findings.filter((finding) => titles.has(titleOf(finding)));
}
