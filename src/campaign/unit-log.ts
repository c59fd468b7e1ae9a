import type { CampaignRequest } from './campaign-request.js';
import type { Shard } from './shard.js';

/** The result of one unit of the work. */
export interface UnitRecord {
  readonly unit: string;
  /** Wall-clock time, in seconds, since the record before, or since the work began. */
  readonly seconds: number;
  /** Plain JSON, defined by the campaign's command. */
  readonly result: unknown;
}

/** The campaign and shard that a log or a part belongs to. */
export interface CampaignHead {
  readonly request: CampaignRequest;
  readonly shard: Shard;
}

/** The units that are done, each saved at once. */
export interface UnitLog {
  readonly records: ReadonlyMap<string, UnitRecord>;
  /**
   * Saves the result of a unit.
   * @throws RequestError when it cannot be written
   */
  readonly add: (unit: string, result: unknown) => void;
  /** Notes that the time was up before all units were done. @throws RequestError as `add` */
  readonly noteOutOfTime: () => void;
  readonly close: () => void;
}

/** The destination of a log's lines. */
export interface LogSink {
  readonly write: (line: object) => void;
  readonly close: () => void;
}

/** A log of units, some of them already known. */
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
