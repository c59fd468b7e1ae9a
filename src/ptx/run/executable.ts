import { createCompiler } from '../compile/index.js';
import { createWarpRegisters, type WarpRegisters } from '../instructions/index.js';
import type {
  Block,
  Item,
  LaneStretch,
  Program,
  ProgramFunction,
  RunOperations,
} from '../program/index.js';

/** Bytes before the registers, for tables that compiled code reads. */
const tableBytes = 2 ** 21;
const pageBytes = 2 ** 16;

/** An item with its number among those of the program, and what runs it where it is a stretch. */
export type ExecutableItem =
  | { readonly item: LaneStretch; readonly number: number; readonly run: RunOperations }
  | { readonly item: Exclude<Item, LaneStretch>; readonly number: number; readonly run: null };

/** A block that is ready to run. */
export interface ExecutableBlock {
  readonly items: readonly ExecutableItem[];
  readonly terminator: Block['terminator'];
  /** The terminator's number among the items of the program. */
  readonly number: number;
  readonly join: number;
}

/** A program that has been compiled for the registers of so many warps. */
export interface ExecutableProgram {
  readonly program: Program;
  readonly blocksOf: (one: ProgramFunction) => readonly ExecutableBlock[];
  /** Numbers of items and terminators go up to here. */
  readonly count: number;
  /** The registers of a warp, as zeros; those that were handed out for the same number are gone. */
  readonly clearRegisters: (warp: number) => {
    /** The byte at which they begin. */
    readonly start: number;
    readonly registers: WarpRegisters;
  };
}

/** Compiles a program's stretches; room for the registers of `warps` warps at once. */
export function createExecutable(program: Program, warps: number): ExecutableProgram {
  const { functions, registerBytes } = program;
  const pages = Math.ceil((tableBytes + warps * registerBytes) / pageBytes);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  let tableEnd = 0;
  const compiler = createCompiler(memory, (table) => {
    const bytes = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
    const at = tableEnd;
    tableEnd = Math.ceil((at + bytes.length) / 16) * 16;
    if (tableEnd > tableBytes) throw new Error('tables of compiled code need more room');
    new Uint8Array(memory.buffer).set(bytes, at);
    return at;
  });
  const all = functions.flatMap(({ blocks }) => blocks.flatMap(({ items }) => items));
  const stretches = all.filter((item) => item.kind === 'lanes');
  const compiled = compiler.compileAll(stretches.map(({ operations }) => operations));
  const runs = new Map(stretches.map((stretch, i) => [stretch, compiled[i]] as const));
  let count = 0;
  const blocks = new Map(
    functions.map((one) => [
      one,
      one.blocks.map(({ items, terminator, join }): ExecutableBlock => ({
        items: items.map((item): ExecutableItem =>
          item.kind === 'lanes'
            ? { item, number: count++, run: runs.get(item)! }
            : { item, number: count++, run: null },
        ),
        terminator,
        number: count++,
        join,
      })),
    ]),
  );
  return {
    program,
    count,
    blocksOf: (one) => blocks.get(one)!,
    clearRegisters: (warp) => {
      const start = tableBytes + warp * registerBytes;
      new Uint8Array(memory.buffer, start, registerBytes).fill(0);
      return { start, registers: createWarpRegisters(memory, start) };
    },
  };
}
