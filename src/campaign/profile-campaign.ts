import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { PolynomialDegree } from '../../kernels/index.js';
import type { MufuArchitecture } from '../hardware/index.js';
import {
  type InputRange,
  type Profile,
  type ProfileOptions,
  type SweepLedger,
  type SweepProgress,
  techniqueNamed,
  type TradeOffOptions,
  UnfinishedSweep,
} from '../profile/index.js';
import { RequestError } from '../request-error.js';
import { type CampaignRequest, plainJson } from './campaign-request.js';
import { type JoinedParts, rejectUnfinished } from './join-parts.js';
import { countByShard, hasUnit, type Shard } from './shard.js';
import type { UnitLog, UnitRecord } from './unit-log.js';

/** Key of an object that stands for a value that JSON lacks. */
const numberKey = '$number';
const integerKey = '$integer';
const float64Key = '$float64';

/** The most bytes, and fp64 numbers, of one unit; text that unpacks to more is refused. */
const mostBytes = 2 ** 26;
const mostNumbers = 2 ** 20;

/** A number in a form that JSON preserves: −0, the infinities and NaN as the text that `Number` reads. */
function portableNumber(value: number): unknown {
  if (Object.is(value, -0)) return { [numberKey]: '-0' };
  return Number.isFinite(value) ? value : { [numberKey]: String(value) };
}

function toPortable(value: unknown): unknown {
  if (typeof value === 'number') return portableNumber(value);
  if (typeof value === 'bigint') return { [integerKey]: String(value) };
  if (value instanceof Float64Array) {
    // Most of a histogram is zero: what follows its last number is left out.
    const end = value.findLastIndex((item) => !Object.is(item, 0)) + 1;
    return { [float64Key]: value.length, values: Array.from(value.subarray(0, end), toPortable) };
  }
  if (Array.isArray(value)) return value.map(toPortable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toPortable(item)]));
}

function fromPortable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromPortable);
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Readonly<Record<string, unknown>>;
  if (numberKey in fields) return Number(fields[numberKey]);
  if (integerKey in fields) return BigInt(fields[integerKey] as string);
  if (float64Key in fields) {
    const length = fields[float64Key] as number;
    if (!(length <= mostNumbers)) throw new RangeError(`no array of ${length} numbers is packed`);
    const array = new Float64Array(length);
    array.set((fields['values'] as readonly unknown[]).map((item) => fromPortable(item) as number));
    return array;
  }
  return Object.fromEntries(Object.entries(fields).map(([key, item]) => [key, fromPortable(item)]));
}

/**
 * A value as base64 text: JSON, DEFLATE-compressed, in which −0, infinities, NaN, big integers and
 * arrays of fp64 numbers keep their bits (a NaN stays a NaN).
 */
export function packValue(value: unknown): string {
  return deflateRawSync(JSON.stringify(toPortable(value))).toString('base64');
}

/**
 * The value that `packValue` was given.
 * @throws Error for text that it did not make
 */
export function unpackValue(text: string): unknown {
  return fromPortable(
    JSON.parse(
      inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: mostBytes }).toString('utf8'),
    ),
  );
}

/** All facts that determine the results of a profile. */
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
 * Options of a technique's run for a request.
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

/** The progress of a shard's units of a sweep. */
export interface ProfileShard {
  /** Number of all units of the sweep. */
  readonly units: number;
  /** The profile; null if units are left to other shards. */
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
 * The profile of a divided sweep, equal to the last bit: the results of slices are added up without
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
