import { findHarmlessRaces, racingLoads } from '../../meaning/certify/index.js';
import { MarkedReads } from '../../meaning/record/index.js';
import type { Finding } from '../../machine/index.js';
import { sourceLines } from '../../ptx/syntax/index.js';
import { listed } from '../../words/index.js';
import { groupFindings, type LaunchFinding } from '../launch/launch-findings.js';
import { chainLaunches, type OpenedChain } from '../launch/open-chain.js';
import type { RunRequest, RunResult } from '../launch/run-launch-file.js';
import { areOutputsOfAllSchedules, judgeRun, type RunVerdict } from '../launch/run-verdict.js';
import type { Certificate } from './certificate.js';
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
async function harmlessRacesOf(
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

/** The verdict on memory and order of a launch. */
export interface OrderOfLaunch extends RunVerdict {
  readonly speaksForAllSchedules: boolean;
  readonly harmlessRaces: Certificate['run']['harmlessRaces'];
}

/** The verdict on memory and order of a launch, for which races do not count that change no output. */
async function certifyOrder(
  followed: FollowedRun,
  result: RunResult,
  request: RunRequest,
  progress: (share: number) => void,
): Promise<OrderOfLaunch> {
  const harmless = await harmlessRacesOf(followed, result, request, progress);
  const left = result.findings.filter((finding) => !harmless.includes(finding));
  const sources = sourceLines(result.opened.module);
  const judged = { ...result, findings: left, groups: groupFindings(left, sources) };
  const number = followed.launches.indexOf(result) + 1;
  return {
    ...judgeRun(judged, null, harmless.length),
    speaksForAllSchedules: areOutputsOfAllSchedules(judged, harmless.length),
    harmlessRaces: groupFindings(harmless, sources).map(({ lines, findings }) => ({
      launch: followed.launches.length === 1 ? null : number,
      lines: lines.map(({ line }) => line),
      races: findings,
    })),
  };
}

/** The verdicts on launches as one: that of all where they agree, else each with the numbers of its launches. */
export function joinOrders(orders: readonly OrderOfLaunch[]): OrderOfLaunch {
  const sentences = new Map<string, number[]>();
  for (const [i, { sentence }] of orders.entries())
    sentences.set(sentence, [...(sentences.get(sentence) ?? []), i + 1]);
  const named = [...sentences].map(
    ([sentence, numbers]) =>
      `${numbers.length === 1 ? 'launch' : 'launches'} ${listed(numbers.map(String))}: ${sentence}`,
  );
  return {
    pass: orders.every(({ pass }) => pass),
    sentence: named.length === 1 ? orders[0].sentence : named.join(' '),
    speaksForAllSchedules: orders.every((one) => one.speaksForAllSchedules),
    harmlessRaces: orders.flatMap(({ harmlessRaces }) => harmlessRaces),
  };
}

/** The launches of a chain as the certificate names them; null for a launch by itself. */
export function chainOfRun(
  { launches }: FollowedRun,
  orders: readonly OrderOfLaunch[],
): Certificate['chain'] {
  if (launches.length === 1) return null;
  return launches.map(({ opened: { path, launch } }, i) => ({
    path,
    entry: launch.entry,
    grid: launch.grid,
    pass: orders[i].pass,
  }));
}

/** The verdicts on memory and order of the launches of a run, in their order. */
export async function certifyOrders(
  followed: FollowedRun,
  request: RunRequest,
  progress: (share: number) => void,
): Promise<readonly OrderOfLaunch[]> {
  const orders: OrderOfLaunch[] = [];
  for (const result of followed.launches)
    orders.push(await certifyOrder(followed, result, request, progress));
  return orders;
}
