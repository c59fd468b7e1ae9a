import type { CampaignRequest } from './campaign-request.js';
import type { Shard } from './shard.js';

/** What was found of one unit of the work. */
export interface UnitRecord {
  readonly unit: string;
  /** Wall-clock time, in seconds, since the record before, or since the work began. */
  readonly seconds: number;
  /** Plain JSON, by the campaign's command. */
  readonly result: unknown;
}

/** Which work a log or a part is of. */
export interface CampaignHead {
  readonly request: CampaignRequest;
  readonly shard: Shard;
}

/** The units that are done, each kept as soon as it is. */
export interface UnitLog {
  readonly records: ReadonlyMap<string, UnitRecord>;
  /** Keeps the result of a unit. @throws RequestError when it cannot be written */
  readonly add: (unit: string, result: unknown) => void;
  /** Notes that the time was up before all units were done. @throws RequestError as `add` */
  readonly noteOutOfTime: () => void;
  readonly close: () => void;
}

/** What a log does with its lines besides keeping them. */
export interface LogSink {
  readonly write: (line: object) => void;
  readonly close: () => void;
}

/** A log of units, some of them known from before. */
export function createUnitLog(known: Iterable<UnitRecord>, sink: LogSink | null): UnitLog {
  const records = new Map(Array.from(known, (record) => [record.unit, record]));
  let last = performance.now();
  return {
    records,
    add: (unit, result) => {
      const now = performance.now();
      const record = { unit, seconds: (now - last) / 1000, result };
      sink?.write(record);
      last = now;
      records.set(unit, record);
    },
    noteOutOfTime: () => sink?.write({ outOfTime: true }),
    close: () => sink?.close(),
  };
}
