import type { ByteStore } from '../../machine/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import type { LaneTracer, TracedMemory, TracedOperation } from '../../ptx/run/index.js';
import {
  byteSlots,
  decidedValue,
  lostValue,
  placeInSlot,
  RegisterFile,
  type Trace,
  valueBytes,
  type ValueFormat,
} from '../trace/index.js';
import type { Recorder } from './recorder.js';
import { putInStore, valueInStore } from './updates.js';

const warpLanes = 32;

type Registers = Parameters<LaneTracer['decide']>[0];
type Slot = Parameters<LaneTracer['decide']>[1][number];

/** What warps of one number have read at a place of the program. */
interface Reads {
  readonly values: number[];
  /** Whether all that they have read were whole values. */
  isKnown: boolean;
}

function hasLane(lanes: number, lane: number): boolean {
  return ((lanes >>> lane) & 1) === 1;
}

/** Whether a trace has what a value was made of: not so for the bitwise sums of sorting networks. */
function hasOperands(trace: Trace, value: number): boolean {
  return trace.operationOf(value).origin !== 'none';
}

/** The values of which bytes of a store are parts. */
function valuesIn({ tags }: ByteStore, first: number, count: number): number[] {
  if (tags === null) return [];
  const [p, q, r, s] = tags;
  return Array.from({ length: count }, (_, i) => {
    const at = first + i;
    const low = p.bytes[at] | (q.bytes[at] << 8) | (r.bytes[at] << 16);
    return ((low | (s.bytes[at] << 24)) >>> 3) & (2 ** 29 - 1);
  }).filter((value) => value > decidedValue);
}

/**
 * Makes each value that is read at some places of the program a value of its own, so that a trace shows what becomes of this
 * reading of it, beside other readings of the same bytes. It takes down which values served for something else than to make
 * values that the trace has: to decide, or to make what is lost.
 */
export class MarkedReads {
  readonly trace: Trace;
  readonly tracer: LaneTracer;
  /** Values that served for something that the trace does not show. */
  readonly otherUses = new Set<number>();
  /** Whether all other uses are known by their values. */
  isComplete = true;
  readonly #isMarked: (site: string) => boolean;
  readonly #reads = new Map<string, Reads>();
  readonly #operations = new Map<string, number>();

  constructor({ trace, tracer }: Recorder, isMarked: (site: string) => boolean) {
    this.trace = trace;
    this.#isMarked = isMarked;
    this.tracer = {
      ...tracer,
      read: (...read) => this.#read(...read),
      operation: (operation, run, memory) =>
        this.#watched(operation, tracer.operation(operation, run, memory), memory),
      decide: (registers, slots, lanes, site) => {
        this.#useRegisters(registers, slots, lanes);
        tracer.decide(registers, slots, lanes, site);
      },
      loseRegisters: (registers, slots, lanes, site) => {
        this.#useRegisters(registers, slots.reads, lanes);
        tracer.loseRegisters(registers, slots, lanes, site);
      },
      lose: (from, to, site) => {
        this.#use(valuesIn(from.store, from.byte, from.bytes));
        tracer.lose(from, to, site);
      },
      update: (update) => this.#update(tracer, update),
      product: (product) => this.#product(tracer, product),
    };
  }

  /** The values that warps of this number in their CTAs have read at a place; null where some of them are unknown. */
  readAt(site: string, warp: number): readonly number[] | null {
    const reads = this.#reads.get(`${warp} ${site}`);
    return reads?.isKnown === true ? reads.values : null;
  }

  #use(values: readonly number[]): void {
    for (const value of values) this.otherUses.add(value);
  }

  #useRegisters(registers: Registers, slots: readonly Slot[], lanes: number): void {
    for (const slot of slots)
      for (const part of registers.parts(slot)) {
        const bytes = part.bytes.length / warpLanes;
        for (let lane = 0; lane < warpLanes; lane++)
          if (hasLane(lanes, lane)) this.#use(valuesIn(part, lane * bytes, bytes));
      }
  }

  #operation(format: ValueFormat, site: string): number {
    const key = `${format.name} ${site}`;
    let known = this.#operations.get(key);
    if (known === undefined) {
      const read = { origin: 'same', name: 'read', function: 'identity', limit: null } as const;
      known = this.trace.addOperation({ ...read, format, site });
      this.#operations.set(key, known);
    }
    return known;
  }

  /** `LaneTracer.read`. */
  #read(
    ...[registers, slots, lanes, warp, site]: Parameters<NonNullable<LaneTracer['read']>>
  ): void {
    if (!this.#isMarked(site)) return;
    const key = `${warp} ${site}`;
    let reads = this.#reads.get(key);
    if (reads === undefined) this.#reads.set(key, (reads = { values: [], isKnown: true }));
    for (const slot of slots) {
      const parts = registers.parts(slot);
      const own = valueBytes(slot) / parts.length;
      for (const part of parts)
        for (let lane = 0; lane < warpLanes; lane++) {
          if (!hasLane(lanes, lane)) continue;
          const first = (lane * part.bytes.length) / warpLanes;
          const values = this.#marked(part, first, own, site);
          if (values === null) reads.isKnown = false;
          else reads.values.push(...values);
        }
    }
  }

  /** Replaces the values that lie in bytes one after another by such of their own; null where something else lies there. */
  #marked(store: ByteStore, first: number, count: number, site: string): readonly number[] | null {
    const { trace } = this;
    const marked: number[] = [];
    for (let at = first; at < first + count;) {
      const [value] = valuesIn(store, at, 1);
      if (value === undefined) return null;
      const format = trace.formatOf(value);
      if (valueInStore(trace, store, at, format.bytes) !== value) return null;
      const own = trace.add(this.#operation(format, site), value, 0, 0, trace.bits[value]);
      trace.high[own] = trace.high[value];
      putInStore(store, at, format.bytes, own);
      marked.push(own);
      at += format.bytes;
    }
    return marked;
  }

  /** An operation of which values count as used otherwise where a lane's result is neither made of them nor one of them. */
  #watched(operation: LaneOperation, run: TracedOperation, memory: TracedMemory): TracedOperation {
    const { trace } = this;
    const { meaning, name } = operation.instruction;
    if (meaning === 'moves' || name.startsWith('selp')) return run;
    const file = new RegisterFile(trace, memory);
    const read = byteSlots(operation.sources).map(({ slot }) => slot);
    const written = byteSlots(operation.destinations).map(({ slot }) => slot);
    const valuesOf = (slots: typeof read, registers: number, lane: number): number[] =>
      slots.flatMap((slot) =>
        Array.from({ length: valueBytes(slot) }, (_, byte) => {
          const { first, stride } = placeInSlot(slot, byte);
          return file.tagAt(registers + first + stride * lane) >>> 3;
        }),
      );
    return (registers, lanes) => {
      const before = trace.count;
      const isTagged = read.some((slot) => file.isTagged(registers, slot));
      const operands = Array.from({ length: isTagged ? warpLanes : 0 }, (_, lane) =>
        hasLane(lanes, lane)
          ? valuesOf(read, registers, lane).filter((value) => value > decidedValue)
          : [],
      );
      run(registers, lanes);
      operands.forEach((values, lane) => {
        if (values.length === 0) return;
        const results = valuesOf(written, registers, lane);
        const isShown =
          results.length > 0 &&
          results.every(
            (value) => values.includes(value) || (value >= before && hasOperands(trace, value)),
          );
        if (!isShown) this.#use(values);
      });
    };
  }

  #update(tracer: LaneTracer, update: Parameters<LaneTracer['update']>[0]): void {
    const { operation, old, operand, compared, next, bytes } = update;
    const before = this.trace.count;
    const values = [
      { store: old, byte: 0 },
      operand,
      ...(compared === null ? [] : [compared]),
    ].flatMap(({ store, byte }) => valuesIn(store, byte, bytes));
    tracer.update(update);
    const results = valuesIn(next.store, next.byte, bytes);
    const isShown = results.length === bytes && results.every((value) => value >= before);
    if (!isShown && operation !== 'exch') this.#use(values);
  }

  #product(
    tracer: LaneTracer,
    product: Parameters<LaneTracer['product']>[0],
  ): ReturnType<LaneTracer['product']> {
    const { products } = this.trace;
    const count = products.length;
    const planes = tracer.product(product);
    if (planes === null) return planes;
    if (products.length === count) this.isComplete = false;
    else {
      const { a, b, c, scales } = products[count];
      for (const values of [a, b, c, scales?.a, scales?.b])
        if (values?.includes(lostValue) === true) this.isComplete = false;
    }
    return planes;
  }
}
