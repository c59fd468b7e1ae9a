import { describeInstruction } from '../instructions/index.js';
import { partitions, type TimedUnit, type TraceEvent } from '../measure/index.js';
import { trackOf, type Track } from './tracks.js';

/** Share of each window of time in which a unit has worked. */
interface BusyShare {
  /** @param start of a piece of work, not before the start of the one before; @param end of it */
  readonly add: (start: number, end: number) => void;
  /** The windows up to the last work: their starts, and the shares from 0 to 1. */
  readonly windows: () => readonly { readonly start: number; readonly share: number }[];
}

/**
 * A unit that has not worked yet.
 *
 * @param window clocks
 * @param units number of such units: the share is that of all
 */
export function createBusyShare(window: number, units: number): BusyShare {
  const busy: number[] = [];
  return {
    add: (start, end) => {
      for (let from = start; from < end;) {
        const index = Math.floor(from / window);
        const to = Math.min(end, (index + 1) * window);
        busy[index] = (busy[index] ?? 0) + to - from;
        from = to;
      }
    },
    windows: () =>
      Array.from(busy, (clocks = 0, index) => ({
        start: index * window,
        share: clocks / (window * units),
      })),
  };
}

/** Properties of the cluster whose events a trace shows. */
export interface TracedCluster {
  /** Index of the cluster among those of the launch. */
  readonly cluster: number;
  readonly ctas: number;
  /** The program's name for a warp. */
  readonly warpName: (warp: number) => string;
  /** Whether the run is timed: without it there are steps in place of clocks, and no shares of time. */
  readonly isTimed: boolean;
}

/** The events of a cluster as text, in pieces. */
export interface ChromeTraceSection {
  readonly add: (event: TraceEvent) => void;
  /** The events added so far, as UTF-8; none may be added afterwards. */
  readonly chunks: () => Iterable<Uint8Array>;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A trace's unit of time is 1 µs; a clock is shown as 1 ns. */
const clocksPerMicrosecond = 1000;
/** Characters of a piece of text. */
const chunkLength = 1 << 16;
/** Clocks over which a unit's share of time is taken, and number of units of each kind in an SM. */
const shareWindow = 256;
const sharedUnits: Readonly<Partial<Record<TimedUnit, number>>> = {
  'tensor core': 1,
  MUFU: partitions,
};

/** A time in microseconds, without digits of rounding errors. */
function microseconds(clocks: number): number {
  return Math.round(clocks * 1000) / (1000 * clocksPerMicrosecond);
}

/** The process and the thread that an event belongs to. */
interface Place {
  readonly pid: number;
  readonly tid: number;
}

/** Records as text, a comma before each, in pieces of UTF-8. */
class RecordWriter {
  readonly #chunks: Uint8Array[] = [];
  #text = '';

  write(record: object): void {
    this.#text += `,\n${JSON.stringify(record)}`;
    if (this.#text.length >= chunkLength) this.#flush();
  }

  /** An event that takes time. */
  complete(
    where: Place,
    category: string,
    { name, start, end }: Pick<TraceEvent, 'name' | 'start' | 'end'>,
    args: object,
  ): void {
    const [ts, dur] = [microseconds(start), microseconds(end - start)];
    this.write({ name, cat: category, ph: 'X', ts, dur, ...where, args });
  }

  chunks(): readonly Uint8Array[] {
    this.#flush();
    return this.#chunks;
  }

  #flush(): void {
    if (this.#text !== '') this.#chunks.push(utf8(this.#text));
    this.#text = '';
  }
}

/** The shares of time in which the units of each CTA's SM have worked, as counters. */
class ShareCounters {
  readonly #shares = new Map<string, { readonly pid: number; readonly unit: string } & BusyShare>();

  add(pid: number, { track, start, end }: TraceEvent): void {
    const units = typeof track === 'number' ? undefined : sharedUnits[track];
    if (units === undefined) return;
    const key = `${pid} ${track}`;
    let share = this.#shares.get(key);
    if (share === undefined) {
      share = { pid, unit: String(track), ...createBusyShare(shareWindow, units) };
      this.#shares.set(key, share);
    }
    share.add(start, end);
  }

  writeTo(writer: RecordWriter): void {
    for (const { pid, unit, windows } of this.#shares.values())
      for (const { start, share } of windows())
        writer.write({
          name: `${unit}, % busy`,
          cat: 'share',
          ph: 'C',
          pid,
          tid: 0,
          ts: microseconds(start),
          args: { busy: Math.round(1000 * share) / 10 },
        });
  }
}

/** Writes the events of a cluster's warps and units. */
class EventWriter {
  readonly #cluster: TracedCluster;
  readonly #writer: RecordWriter;
  readonly #tracks = new Map<string, Track>();
  readonly #warpEnds = new Map<string, number>();
  #flows = 0;

  constructor(cluster: TracedCluster, writer: RecordWriter) {
    this.#cluster = cluster;
    this.#writer = writer;
  }

  processOf(cta: number): number {
    return this.#cluster.cluster * this.#cluster.ctas + cta + 1;
  }

  nameProcesses(): void {
    const { cluster, ctas } = this.#cluster;
    for (let cta = 0; cta < ctas; cta++) {
      const pid = this.processOf(cta);
      const about = { ph: 'M', pid, tid: 0 };
      const name = `cluster ${cluster}, CTA ${cta}`;
      this.#writer.write({ ...about, name: 'process_name', args: { name } });
      this.#writer.write({ ...about, name: 'process_sort_index', args: { sort_index: pid } });
    }
  }

  addWarpEvent(event: TraceEvent): void {
    const where = this.#place(event);
    const { start, end, isWait, instruction } = event;
    const key = `${where.pid} ${where.tid}`;
    const before = this.#warpEnds.get(key) ?? 0;
    // Nothing else keeps a warp from its next instruction.
    if (before < start) {
      const loading = { name: 'registers being loaded', start: before, end: start };
      this.#writer.complete(where, 'wait', loading, {});
    }
    this.#warpEnds.set(key, end);
    const args = instruction === null ? {} : describeInstruction(instruction);
    this.#writer.complete(where, isWait ? 'wait' : 'instruction', event, args);
  }

  addUnitEvent(event: TraceEvent): void {
    const where = this.#place(event);
    const { name, start, end, issuedAt, instruction, warp, track } = event;
    const args = {
      warp: this.#cluster.warpName(warp),
      ...(instruction === null ? {} : describeInstruction(instruction)),
    };
    const writer = this.#writer;
    if (track === 'issue') {
      writer.write({ name, cat: 'commit', ph: 'i', s: 't', ts: microseconds(end), ...where, args });
      return;
    }
    writer.complete(where, issuedAt === null ? 'code' : 'operation', event, args);
    if (issuedAt === null) return;
    const flow = { name: 'issue', cat: 'issue', id: `${this.#cluster.cluster}.${this.#flows++}` };
    const from = this.#place({ ...event, track: warp });
    writer.write({ ...flow, ph: 's', ts: microseconds(issuedAt), ...from });
    // A flow ends in the event that encloses its time.
    writer.write({ ...flow, ph: 'f', bp: 'e', ts: microseconds(start), ...where });
  }

  /** The track of an event; its name is written when it is first met. */
  #place(event: TraceEvent): Place {
    const pid = this.processOf(event.cta);
    const track = trackOf(event, this.#cluster.warpName);
    const key = `${pid} ${track.id}`;
    if (!this.#tracks.has(key)) {
      this.#tracks.set(key, track);
      const about = { ph: 'M', pid, tid: track.id };
      this.#writer.write({ ...about, name: 'thread_name', args: { name: track.name } });
      this.#writer.write({ ...about, name: 'thread_sort_index', args: { sort_index: track.id } });
    }
    return { pid, tid: track.id };
  }
}

/**
 * A cluster's events in the Trace Event Format of Chrome, which Perfetto opens. A CTA is a process; its
 * warps and units are threads. Everything that takes time is a complete event (`X`): for a warp, its
 * instructions (category `instruction`) and waits (`wait`, also those for registers that are being
 * loaded); for a unit, its operations (`operation`) and the code on registers that it serves (`code`).
 * A flow leads from the issue of an operation to the operation. Commits are instants (`commit`).
 * Counters give the share of time in which the tensor core and the MUFUs work.
 *
 * The complete events of a thread come in the order of their time and do not overlap.
 */
export function createChromeTraceSection(cluster: TracedCluster): ChromeTraceSection {
  const writer = new RecordWriter();
  const events = new EventWriter(cluster, writer);
  const shares = new ShareCounters();
  events.nameProcesses();
  return {
    add: (event) => {
      if (cluster.isTimed) shares.add(events.processOf(event.cta), event);
      if (typeof event.track === 'number') events.addWarpEvent(event);
      else events.addUnitEvent(event);
    },
    chunks: () => {
      shares.writeTo(writer);
      return writer.chunks();
    },
  };
}

/**
 * The beginning of a trace file.
 *
 * @param about facts about the traced run, by name
 * @param isTimed whether 1 ns stands for a clock; else it stands for a step
 */
export function chromeTraceHead(
  about: Readonly<Record<string, string>>,
  isTimed: boolean,
): Uint8Array {
  const labels = `1 ns is 1 ${isTimed ? 'clock' : 'step'}`;
  const first = { name: 'process_labels', ph: 'M', pid: 1, tid: 0, args: { labels } };
  const head = { displayTimeUnit: 'ns', otherData: { ...about, time: labels } };
  return utf8(`${JSON.stringify(head).slice(0, -1)},"traceEvents":[\n${JSON.stringify(first)}`);
}

/** The end of a trace file. */
export function chromeTraceTail(): Uint8Array {
  return utf8('\n]}\n');
}
