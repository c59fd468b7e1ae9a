import { expect } from 'vitest';

/** A record of a trace file in the Trace Event Format. */
export interface TraceRecord {
  readonly ph: string;
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly id?: string;
  readonly bp?: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

export interface TraceDocument {
  readonly displayTimeUnit: string;
  readonly otherData: Readonly<Record<string, string>>;
  readonly traceEvents: readonly TraceRecord[];
}

/** A record of something that takes time. */
export interface CompleteRecord extends TraceRecord {
  readonly ts: number;
  readonly dur: number;
}

const rounding = 1e-9;

export function completeRecords({ traceEvents }: TraceDocument): CompleteRecord[] {
  return traceEvents.filter((record): record is CompleteRecord => record.ph === 'X');
}

function threadOf({ pid, tid }: TraceRecord): string {
  return `${pid} ${tid}`;
}

/** The names of threads or processes, each given once. */
function namesOf({ traceEvents }: TraceDocument, kind: string, key: (r: TraceRecord) => string) {
  const named = traceEvents.filter(({ ph, name }) => ph === 'M' && name === kind);
  const names = new Map(named.map((record) => [key(record), String(record.args?.['name'])]));
  expect(names.size).toBe(named.length);
  return names;
}

/** The name of every thread, by `pid tid`. */
export function threadNames(document: TraceDocument): Map<string, string> {
  return namesOf(document, 'thread_name', threadOf);
}

/** The name of what is wrong with a record, by the condition that it breaks. */
type Conditions = Readonly<Record<string, boolean>>;

function broken(record: TraceRecord, conditions: Conditions): string[] {
  return Object.entries(conditions)
    .filter(([, holds]) => !holds)
    .map(([name]) => `${name}: ${JSON.stringify(record)}`);
}

/** What is wrong with the complete events of the threads. */
function wrongTimes(document: TraceDocument): string[] {
  const ends = new Map<string, number>();
  return completeRecords(document).flatMap((record) => {
    const thread = threadOf(record);
    const { ts, dur } = record;
    const before = ends.get(thread) ?? 0;
    ends.set(thread, ts + dur);
    return broken(record, { duration: dur > 0, order: ts >= before - rounding });
  });
}

/** What is wrong with the flows: each leads from an event of a warp to an operation, not back. */
function wrongFlows(document: TraceDocument): string[] {
  const beginnings = new Map(
    completeRecords(document).map((record) => [`${threadOf(record)} ${record.ts}`, record]),
  );
  const at = (record: TraceRecord) => beginnings.get(`${threadOf(record)} ${record.ts}`);
  const flows = (phase: string) => document.traceEvents.filter(({ ph }) => ph === phase);
  const sources = new Map(flows('s').map((record) => [record.id, record]));
  const targets = new Set(flows('f').map(({ id }) => id));
  expect(sources.size).toBe(flows('s').length);
  expect(targets.size).toBe(flows('f').length);
  expect(targets.size).toBe(sources.size);
  return flows('f').flatMap((target) => {
    const source = sources.get(target.id);
    if (source === undefined) return [`no source of flow ${target.id}`];
    return broken(target, {
      'forward in time': source.ts! <= target.ts!,
      'bound to what encloses it': target.bp === 'e',
      'from an instruction': at(source)?.cat === 'instruction',
      'to an operation': at(target)?.cat === 'operation',
      'to its own operation': at(target)?.name === at(source)?.name,
    });
  });
}

/**
 * Expects a text to be a trace as the format asks for it: known phases, times in order and without
 * overlap on each thread, a name for whatever is shown, flows that begin and end in events.
 */
export function expectTrace(text: string): TraceDocument {
  const document = JSON.parse(text) as TraceDocument;
  expect(document.displayTimeUnit).toBe('ns');
  const threads = threadNames(document);
  const processes = namesOf(document, 'process_name', ({ pid }) => String(pid));
  const wrong = document.traceEvents.flatMap((record) => {
    const { ph, pid, tid, ts, args } = record;
    const busy = args?.['busy'] as number;
    return broken(record, {
      phase: ['M', 'X', 'i', 's', 'f', 'C'].includes(ph),
      integers: Number.isInteger(pid) && Number.isInteger(tid),
      process: processes.has(String(pid)),
      time: ph === 'M' || ts! >= 0,
      thread: !'Xisf'.includes(ph) || threads.has(threadOf(record)),
      share: ph !== 'C' || (busy >= 0 && busy <= 100),
    });
  });
  expect([...wrong, ...wrongTimes(document), ...wrongFlows(document)]).toEqual([]);
  return document;
}
