import { type RealDomain, RoundingDomain } from '../../meaning/domains/index.js';
import {
  countOverflowed,
  coverageOf,
  profileRounding,
  type OutputValues,
} from '../../meaning/certify/index.js';
import { documentHead } from '../audit/index.js';
import type { LaunchContract } from '../launch/contract-of-launch.js';
import type { ChainRequest } from '../launch/open-chain.js';
import { chainOutputs, openTemplate } from '../launch/open-launch.js';
import type { RunRequest } from '../launch/run-launch-file.js';
import type {
  Certificate,
  CertificateContract,
  CertificatePlace,
  CertificateStatus,
  CountedPlace,
  OutputCertificate,
} from './certificate.js';
import { reasonsOf, silenceOf } from './certificate-reasons.js';
import { compareWithContract } from './compare-with-contract.js';
import { certifyInfluence } from './certify-influence.js';
import { evaluateRun } from './contract-values.js';
import { certifyOrders, chainOfRun, joinOrders } from './certify-order.js';
import { groupIdioms } from './group-idioms.js';
import { certifySchedules } from './certify-schedules.js';
import { certifySame } from './certify-same.js';
import { type FollowedRun, followLaunch, placesOf } from './followed-run.js';
import { otherRun, tellContract } from './told-contract.js';

/** The launch to certify. */
export interface CertifyRequest extends RunRequest, ChainRequest {
  /** The launch file to compare expressions with; default none. */
  readonly same?: string | undefined;
  /** Random schedules whose expressions are compared; default none. */
  readonly schedules?: number | undefined;
  /** Elements of an output whose error is attributed to places; default 256. */
  readonly samples?: number | undefined;
}

function countedPlaces(
  counts: ReadonlyMap<string, number>,
  placeOf: (site: string) => CertificatePlace,
): readonly CountedPlace[] {
  return [...counts].map(([site, count]) => ({ ...placeOf(site), count }));
}

function summaryOf(contract: LaunchContract): CertificateContract {
  const { kind } = contract;
  return kind === 'recurrent' ? { kind, family: contract.problem.family } : { kind };
}

const defaultSamples = 256;

function certifyOutput(
  followed: FollowedRun,
  output: OutputValues,
  { real, rounding }: { readonly real: RealDomain; readonly rounding: RoundingDomain },
  samples: number,
): OutputCertificate {
  const { result, recorder } = followed;
  const { dtype, shape } = result.outputs.find(({ name }) => name === output.tensor)!;
  const profile = output.format.isInteger
    ? null
    : profileRounding(recorder.trace, rounding, output, samples);
  const placeOf = placesOf(followed);
  return {
    name: output.tensor,
    dtype,
    shape,
    coverage: coverageOf(recorder, output),
    overflowed: countOverflowed(recorder.trace, real, output),
    rounding: profile && {
      ...profile,
      shares: [...profile.shares]
        .map(([site, share]) => ({ ...placeOf(site), share }))
        .sort((a, b) => Math.abs(b.share) - Math.abs(a.share)),
    },
  };
}

/** What is known of the outputs; the domain of their errors is as large as the trace, and is not kept. */
function certifyOutputs(
  followed: FollowedRun,
  real: RealDomain,
  samples: number,
): readonly OutputCertificate[] {
  const errors = { real, rounding: new RoundingDomain(followed.recorder.trace, real) };
  return followed.outputs.map((output) => certifyOutput(followed, output, errors, samples));
}

/** The launch to compare with: its PTX and its tensors are its own, and its problem is the same if it is a template. */
async function requestOfOther(request: CertifyRequest, path: string): Promise<RunRequest> {
  const own = { ...request, path, following: [], ptx: undefined, tensors: undefined };
  if (request.problem === undefined) return own;
  const isTemplate = chainOutputs(await openTemplate({ path })).some(({ as }) => as !== null);
  return isTemplate ? own : { ...own, problem: undefined };
}

/** A certificate, and the texts of the kernels that it is about, of each launch. */
export interface CertifiedLaunch {
  readonly certificate: Certificate;
  readonly ptx: readonly string[];
}

/**
 * Certifies a launch, or a chain of launches: runs it while its values are followed.
 *
 * @param progress called with the share of the clusters that have run
 * @throws RequestError for a request that cannot be carried out
 */
export async function certifyLaunch(
  request: CertifyRequest,
  version: string,
  progress: (share: number) => void = () => undefined,
): Promise<CertifiedLaunch> {
  const followed = await followLaunch(request, progress);
  const certificate = await certifyFollowed(followed, request, version, progress);
  return { certificate, ptx: followed.launches.map(({ opened }) => opened.ptx) };
}

/**
 * The certificate of a run whose values were followed.
 *
 * @param progress as `certifyLaunch` calls it, for the launch that is compared with
 * @throws RequestError for a contract that does not fit, and for a launch to compare with that does not run
 */
export async function certifyFollowed(
  followed: FollowedRun,
  request: CertifyRequest,
  version: string,
  progress: (share: number) => void = () => undefined,
): Promise<Certificate> {
  const { result, recorder } = followed;
  const { trace, losses } = recorder;
  const here = await tellContract(followed, request.contractFile);
  const contract = here.told?.contract ?? null;
  const { idioms, ...real } = evaluateRun(followed);
  const { opened, run } = result;
  const placeOf = placesOf(followed);
  const orders = await certifyOrders(followed, request, progress);
  const parts = {
    contract: contract && summaryOf(contract),
    run: joinOrders(orders),
    outputs: certifyOutputs(followed, real.kept, request.samples ?? defaultSamples),
    ...compareWithContract(followed, real, contract),
    idioms: groupIdioms(idioms.found, placeOf),
    influence: certifyInfluence(here),
    schedules:
      request.schedules === undefined
        ? null
        : await certifySchedules(followed, request, request.schedules, progress),
    same:
      request.same === undefined
        ? null
        : certifySame(
            here,
            await otherRun(
              await followLaunch(await requestOfOther(request, request.same), progress),
              request.contractFile,
            ),
          ),
  };
  const { refuting, missing } = reasonsOf(parts, followed, contract);
  const status: CertificateStatus =
    refuting.length > 0 ? 'refuted' : missing.length > 0 ? 'incomplete' : 'certified';
  return {
    ...documentHead('certificate', version, result.seconds),
    status,
    reasons: [...refuting, ...missing],
    launch: {
      path: opened.path,
      entry: opened.launch.entry,
      architecture: run.architecture,
      grid: opened.launch.grid,
    },
    chain: chainOfRun(followed, orders),
    ...parts,
    decisions: countedPlaces(losses.decided, placeOf),
    losses: countedPlaces(losses.lost, placeOf),
    followed: { values: trace.count, products: trace.products.length },
    silent: silenceOf(parts, followed, contract),
  };
}
