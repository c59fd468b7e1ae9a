import { createCompiler } from '../compile/index.js';
import { createWarpRegisters, type WarpRegisters } from '../instructions/index.js';
import {
  splitStretch,
  type Block,
  type Item,
  type LaneStretch,
  type Program,
  type ProgramFunction,
  type RunOperations,
} from '../program/index.js';
import { compileStretches } from './compile-stretches.js';
import { findTraced, type LaneTracer } from './lane-tracer.js';

/** Bytes before the registers, for tables that compiled code reads. */
const tableBytes = 2 ** 21;
const pageBytes = 2 ** 16;

/** An item with its number among those of the program, and, for a stretch, its compiled form. */
type ExecutableItem = {
  readonly number: number;
  /** The line where it begins, if that is watched; otherwise null. */
  readonly watched: number | null;
  /** Offsets of the registers of wgmma that it reads or writes; null where there are none. */
  readonly touched: readonly number[] | null;
} & (
  | { readonly item: LaneStretch; readonly run: RunOperations }
  | { readonly item: Exclude<Item, LaneStretch>; readonly run: null }
);

/** A block that is ready to run. */
export interface ExecutableBlock {
  readonly items: readonly ExecutableItem[];
  readonly terminator: Block['terminator'];
  /** The terminator's number among the items of the program, and its line if that is watched. */
  readonly number: number;
  readonly watched: number | null;
  readonly join: number;
}

/** A program that has been compiled for the registers of some number of warps. */
export interface ExecutableProgram {
  readonly program: Program;
  readonly blocksOf: (one: ProgramFunction) => readonly ExecutableBlock[];
  /** Follows what the values of the registers stand for; null where nobody does. */
  readonly tracer: LaneTracer | null;
  /** Numbers of items and terminators are below this. */
  readonly count: number;
  /** The registers of a warp, set to zeros; registers handed out earlier for the same number are invalid. */
  readonly clearRegisters: (warp: number) => {
    /** The byte at which they begin. */
    readonly start: number;
    readonly registers: WarpRegisters;
  };
  /** A copy of the registers of all warps, to restore after others have used them. */
  readonly saveRegisters: () => Uint8Array;
  /**
   * Restores registers.
   * @param saved result of `saveRegisters`
   */
  readonly restoreRegisters: (saved: Uint8Array) => void;
}

/**
 * Other items of some blocks. Each counts as the item `as` of the program: the same item, or the one that it replaces.
 */
export type ProgramChange = ReadonlyMap<
  Block,
  readonly { readonly item: Item; readonly as: Item }[]
>;

/** The same program with other items in some blocks; it shares the compiled code and the registers of the first. */
export function changeProgram(
  executable: ExecutableProgram,
  change: ProgramChange,
): ExecutableProgram {
  const { program, blocksOf } = executable;
  const known = new Map<Item, ExecutableItem>();
  for (const one of program.functions)
    for (const { items } of blocksOf(one))
      for (const executableItem of items) known.set(executableItem.item, executableItem);
  const changed = ({ item, as }: { readonly item: Item; readonly as: Item }): ExecutableItem => {
    const stands = known.get(as)!;
    if (item === as || item.kind === 'lanes') return known.get(item)!;
    return { item, number: stands.number, watched: null, touched: stands.touched, run: null };
  };
  const blocks = new Map(
    program.functions.map((one) => [
      one,
      blocksOf(one).map((block, i) => {
        const items = change.get(one.blocks[i]);
        return items === undefined ? block : { ...block, items: items.map(changed) };
      }),
    ]),
  );
  return { ...executable, blocksOf: (one) => blocks.get(one)! };
}

const product = 'wgmma.mma_async';

/** Offsets of the registers that products of a warpgroup use: those of D, and of A. */
function productRegisters(functions: readonly ProgramFunction[]): ReadonlySet<number> {
  const offsets = new Set<number>();
  for (const { blocks } of functions)
    for (const { items } of blocks)
      for (const item of items)
        if (item.kind === 'visible' && item.mnemonic.startsWith(product))
          for (const { offset } of item.operation.lends.flat()) offsets.add(offset);
  return offsets;
}

/** Offsets of the slots that an item reads or writes itself. */
function offsetsOf(item: Item): readonly number[] {
  switch (item.kind) {
    case 'lanes':
      return [...item.reads, ...item.writes];
    case 'visible':
    case 'warp':
      return [...item.operation.reads, ...item.operation.writes].map(({ offset }) => offset);
    case 'call':
      return [...item.arguments, ...item.results].flatMap(({ from, to }) =>
        'offset' in from ? [from.offset, to.offset] : [to.offset],
      );
    case 'count':
      return [item.slot.offset];
    case 'trap':
      return [];
  }
}

/** For an item the offsets of the registers of products that it reads or writes; null for none. */
function findTouched(
  functions: readonly ProgramFunction[],
): (item: Item) => readonly number[] | null {
  const ofProducts = productRegisters(functions);
  if (ofProducts.size === 0) return () => null;
  return (item) => {
    const touched = offsetsOf(item).filter((offset) => ofProducts.has(offset));
    return touched.length === 0 ? null : touched;
  };
}

/** The lines of an item's first and last instruction. */
function linesOf(item: Item): { readonly first: number; readonly last: number } {
  if (item.kind !== 'lanes') return { first: item.line, last: item.line };
  const { operations } = item;
  return { first: operations[0].line, last: operations[operations.length - 1].line };
}

/** The memory of compiled code: its tables, the registers of `warps` warps, and the planes of their tags if they are followed. */
class ProgramMemory {
  readonly memory: WebAssembly.Memory;
  readonly planeBytes: number;
  readonly #registerBytes: number;
  readonly #tracer: LaneTracer | null;
  #tableEnd = 0;

  constructor(registerBytes: number, warps: number, tracer: LaneTracer | null) {
    this.planeBytes = warps * registerBytes;
    const areas = tracer === null ? 1 : 5;
    const pages = Math.ceil((tableBytes + areas * this.planeBytes) / pageBytes);
    this.memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    this.#registerBytes = registerBytes;
    this.#tracer = tracer;
  }

  /** Copies a table into the memory; returns its address. */
  placeTable({ buffer, byteOffset, byteLength }: ArrayBufferView): number {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    const at = this.#tableEnd;
    this.#tableEnd = Math.ceil((at + bytes.length) / 16) * 16;
    if (this.#tableEnd > tableBytes) throw new Error('tables of compiled code need more room');
    new Uint8Array(this.memory.buffer).set(bytes, at);
    return at;
  }

  clearRegisters(warp: number): ReturnType<ExecutableProgram['clearRegisters']> {
    const start = tableBytes + warp * this.#registerBytes;
    const cleared = (area: number): number => {
      const first = start + area * this.planeBytes;
      new Uint8Array(this.memory.buffer, first, this.#registerBytes).fill(0);
      return first;
    };
    const tracer = this.#tracer;
    cleared(0);
    if (tracer === null) return { start, registers: createWarpRegisters(this.memory, start) };
    const plane = (area: number) => createWarpRegisters(this.memory, cleared(area));
    const followed = { planes: [plane(1), plane(2), plane(3), plane(4)], tracer } as const;
    return { start, registers: createWarpRegisters(this.memory, start, followed) };
  }

  saveRegisters(): Uint8Array {
    const bytes = (this.#tracer === null ? 1 : 5) * this.planeBytes;
    return new Uint8Array(this.memory.buffer, tableBytes, bytes).slice();
  }

  restoreRegisters(saved: Uint8Array): void {
    new Uint8Array(this.memory.buffer).set(saved, tableBytes);
  }
}

/**
 * Compiles a program's stretches, with room for the registers of `warps` warps at once.
 *
 * @param tracer follows what values stand for; default nobody does
 */
export function createExecutable(
  program: Program,
  warps: number,
  tracer: LaneTracer | null = null,
): ExecutableProgram {
  const { functions, registerBytes } = program;
  const memory = new ProgramMemory(registerBytes, warps, tracer);
  const compiler = createCompiler(memory.memory, (table) => memory.placeTable(table));
  const isWatched = (line: number) => program.watched.has(line);
  /** The line to watch before an item; null within the line of the item before it. */
  const watchedAt = (line: number, before: Item | undefined) =>
    isWatched(line) && (before === undefined || linesOf(before).last !== line) ? line : null;
  const itemsOf = ({ items }: Block) =>
    items.flatMap((item): readonly Item[] =>
      item.kind === 'lanes' ? splitStretch(item, isWatched) : [item],
    );
  const blocksOf = new Map(
    functions.map((one) => [one, one.blocks.map((block) => ({ ...block, items: itemsOf(block) }))]),
  );
  const stretches = [...blocksOf.values()]
    .flatMap((ofOne) => ofOne.flatMap(({ items }) => items))
    .filter((item) => item.kind === 'lanes');
  const { planeBytes } = memory;
  const words = new Uint32Array(memory.memory.buffer);
  const compiled = compileStretches(
    stretches,
    compiler,
    tracer && { tracer, memory: { words, planeBytes }, isTraced: findTraced(functions) },
  );
  const runs = new Map(stretches.map((stretch, i) => [stretch, compiled[i]] as const));
  const touchedBy = findTouched(functions);
  let count = 0;
  const executableItem = (item: Item, i: number, items: readonly Item[]): ExecutableItem => {
    const numbered = {
      number: count++,
      watched: watchedAt(linesOf(item).first, items[i - 1]),
      touched: touchedBy(item),
    };
    if (item.kind !== 'lanes') return { ...numbered, item, run: null };
    return { ...numbered, item, run: runs.get(item)! };
  };
  const executableBlock = ({ items, terminator, join }: Block): ExecutableBlock => ({
    items: items.map(executableItem),
    terminator,
    number: count++,
    watched: terminator.kind === 'goto' ? null : watchedAt(terminator.line, items.at(-1)),
    join,
  });
  const blocks = new Map([...blocksOf].map(([one, ofOne]) => [one, ofOne.map(executableBlock)]));
  return {
    program,
    tracer,
    count,
    blocksOf: (one) => blocks.get(one)!,
    clearRegisters: (warp) => memory.clearRegisters(warp),
    saveRegisters: () => memory.saveRegisters(),
    restoreRegisters: (saved) => memory.restoreRegisters(saved),
  };
}
