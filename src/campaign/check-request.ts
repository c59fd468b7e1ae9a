import type {
  CheckPlan,
  LawResult,
  PlannedLaw,
  RecurrentCheckPlan,
  ResolvedPromises,
} from '../../properties/index.js';
import {
  reportedPromises,
  reportedRecurrentPromises,
  type PropertyName,
  type ReportedKernel,
  type ReportedPromises,
  type ReportedRecurrentPromises,
} from '../report/json/check/index.js';
import { plainJson, type CampaignRequest } from './campaign-request.js';

/** A law as a campaign tries it. */
export interface RequestedLaw {
  readonly strength: LawResult['strength'];
  /** The reason that it is not tried at all; null if it is. */
  readonly skipped: string | null;
  /** Whether the kernel promises it. */
  readonly isPromised: boolean;
  readonly regimes: readonly string[];
}

/** The promises of a check, by its contract: attention where none is named. */
type RequestedPromises =
  | {
      readonly contract?: undefined;
      readonly promises: ReportedPromises;
      readonly scoreLimit: ResolvedPromises['scoreLimit'];
    }
  | { readonly contract: 'recurrent'; readonly promises: ReportedRecurrentPromises };

/** All facts that determine the results of a check. */
export type CheckRequest = CampaignRequest &
  RequestedPromises & {
    readonly command: 'check';
    readonly kernel: ReportedKernel;
    /** Seconds that one answer of a command may take; null for an emulated kernel. */
    readonly timeout: number | null;
    readonly configurations: readonly string[];
    /** The laws, in the order of the report. */
    readonly laws: Readonly<Partial<Record<PropertyName, RequestedLaw>>>;
    /** Problems per law. */
    readonly runs: number;
    readonly seed: number;
  };

/** The members of a request beside its plan. */
type RequestHead = Pick<CheckRequest, 'version' | 'kernel' | 'timeout' | 'runs' | 'seed'>;

/** The laws of a plan of any contract. */
function requestedLaws<Id extends string>(
  planned: readonly (Pick<PlannedLaw, 'skipped' | 'isPromised'> & {
    readonly id: Id;
    readonly regimes: readonly string[];
  })[],
  strengths: Readonly<Record<Id, LawResult['strength']>>,
): CheckRequest['laws'] {
  return Object.fromEntries(
    planned.map(({ id, skipped, isPromised, regimes }) => [
      id,
      { strength: strengths[id], skipped, isPromised, regimes },
    ]),
  );
}

/** The request of a check by its plan, as plain JSON. */
export function checkRequest({ laws, promises }: CheckPlan, head: RequestHead): CheckRequest {
  return plainJson<CheckRequest>({
    command: 'check',
    ...head,
    promises: reportedPromises(promises),
    scoreLimit: promises.scoreLimit,
    configurations: Object.keys(promises.configurations),
    laws: requestedLaws(laws, promises.laws),
  });
}

/** As {@link checkRequest}, of linear attention. */
export function recurrentCheckRequest(
  { laws, promises }: RecurrentCheckPlan,
  head: RequestHead,
): CheckRequest {
  return plainJson<CheckRequest>({
    command: 'check',
    contract: 'recurrent',
    ...head,
    promises: reportedRecurrentPromises(promises),
    configurations: Object.keys(promises.configurations),
    laws: requestedLaws(laws, promises.laws),
  });
}

/** Consecutive problems of one law, which are tried, and saved, together. */
export interface CheckUnit {
  readonly name: string;
  readonly law: PropertyName;
  /** Numbers of its problems, from 1, both included. */
  readonly first: number;
  readonly last: number;
}

/** Problems per unit: a second or so, the most work that a killed process loses. */
const roundsPerUnit = 5;

/** The laws that are tried, in the order of the report. */
function triedLaws({ laws }: CheckRequest): PropertyName[] {
  return (Object.keys(laws) as PropertyName[]).filter((id) => laws[id]?.skipped === null);
}

/**
 * The units of a check: laws take turns, as they do in a check that is not divided, and begin each turn
 * one law later, so that no shard has the same laws throughout.
 */
export function checkUnits(request: CheckRequest): CheckUnit[] {
  const ids = triedLaws(request);
  const turns = Math.ceil(request.runs / roundsPerUnit);
  return Array.from({ length: turns }, (_, turn) =>
    ids.map((_, i): CheckUnit => {
      const law = ids[(turn + i) % ids.length];
      const first = turn * roundsPerUnit + 1;
      const last = Math.min(first + roundsPerUnit - 1, request.runs);
      return { name: `${law} ${first}-${last}`, law, first, last };
    }),
  ).flat();
}
