import type { PolynomialDegree } from '../../kernels/index.js';
import type { MufuArchitecture } from '../hardware/index.js';
import {
  techniqueNamed,
  UnfinishedSweep,
  type InputRange,
  type Profile,
  type ProfileOptions,
  type SweepLedger,
  type SweepProgress,
  type TradeOffOptions,
} from '../profile/index.js';
import { RequestError } from '../request-error.js';
import { plainJson, type CampaignRequest } from './campaign-request.js';
import { rejectUnfinished, type JoinedParts } from './join-parts.js';
import { packValue, unpackValue } from './portable-value.js';
import { countByShard, hasUnit, type Shard } from './shard.js';
import type { UnitLog, UnitRecord } from './unit-log.js';

/** All that decides what a profile finds. */
export interface ProfileRequest extends CampaignRequest {
  readonly command: 'profile';
  readonly technique: string;
  readonly range: InputRange;
  readonly architecture: MufuArchitecture;
  readonly degrees?: readonly PolynomialDegree[];
  readonly tuning?: string;
  readonly problems: TradeOffOptions;
}

/** The request of a profile, as plain JSON. */
export function profileRequest(request: Omit<ProfileRequest, 'command'>): ProfileRequest {
  return plainJson({ command: 'profile', ...request });
}

/**
 * What a technique is run with for a request.
 * @throws RequestError for a range that the command line does not take
 */
function optionsOf(request: ProfileRequest): ProfileOptions {
  const { from = -Infinity, to = Infinity } = request.range;
  if (typeof from !== 'number' || typeof to !== 'number')
    throw new RequestError('the range of the profile is none of numbers; make the parts again');
  const { range, architecture, degrees, tuning, problems } = request;
  return {
    range,
    architecture,
    ...problems,
    ...(degrees === undefined ? {} : { degrees }),
    ...(tuning === undefined ? {} : { tuning }),
  };
}

function recalled(records: ReadonlyMap<string, UnitRecord>, unit: number) {
  const record = records.get(String(unit));
  return record === undefined
    ? undefined
    : (unpackValue(record.result as string) as readonly unknown[]);
}

/** How a shard's units of a sweep went. */
export interface ProfileShard {
  /** All units of the sweep. */
  readonly units: number;
  /** Null where units are left to other shards. */
  readonly profile: Profile | null;
}

/**
 * Measures the units of a shard that the log does not know yet.
 * @throws RequestError for a request that cannot be carried out, and when the log cannot be written
 */
export async function runProfileUnits(
  request: ProfileRequest,
  shard: Shard,
  log: UnitLog,
  { threads, progress }: { readonly threads: number; readonly progress?: SweepProgress },
): Promise<ProfileShard> {
  let units = 0;
  const ledger: SweepLedger = {
    begin: (count) => (units = count),
    recall: (unit) => recalled(log.records, unit),
    isOwn: (unit) => hasUnit(shard, unit),
    record: (unit, results) => log.add(String(unit), packValue(results)),
  };
  const options = { ...optionsOf(request), threads, ledger };
  try {
    const profile = await techniqueNamed(request.technique).run(
      progress === undefined ? options : { ...options, progress },
    );
    return { units, profile };
  } catch (error) {
    if (error instanceof UnfinishedSweep) return { units, profile: null };
    throw error;
  }
}

/**
 * The profile that a divided one comes to, to the last bit: what is found of slices is added up without
 * rounding, in any order.
 * @throws RequestError for a part that stopped before its end
 */
export async function joinProfile(joined: JoinedParts): Promise<Profile> {
  const request = joined.request as ProfileRequest;
  const { records, parts } = joined;
  const ledger: SweepLedger = {
    recall: (unit) => recalled(records, unit),
    isOwn: () => false,
    record: () => undefined,
  };
  try {
    return await techniqueNamed(request.technique).run({ ...optionsOf(request), ledger });
  } catch (error) {
    if (error instanceof UnfinishedSweep)
      rejectUnfinished(joined, countByShard(error.missing, parts.length));
    throw error;
  }
}
