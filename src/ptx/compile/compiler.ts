import { createLibrary, moduleBytes } from '../../isa/webassembly/index.js';
import { lazily } from '../../reuse.js';
import type { LaneValue, RegisterWidth } from '../instructions/index.js';
import type { LaneOperation, RunOperations, Slot, Source } from '../program/index.js';
import { stretchFunction, type EmittedOperation, type Variant } from './stretch.js';
import { createTemplates } from './template.js';

const warpLanes = 32;
/** Distance from the low halves of a register of 128 bits to the high ones. */
const halfBytes = 8 * warpLanes;
const trueBits = 0xffffffff;

/** Bytes from a lane's value to the next lane's. */
function laneBytes(width: RegisterWidth): number {
  return width === 64 || width === 128 ? 8 : 4;
}

/** The bits of a lane in a register, up to `width`. */
function readSlot(view: DataView, at: number, slot: Slot, width: RegisterWidth): LaneValue {
  if (width === 'pred') return view.getUint32(at, true) === 0 ? 0 : 1;
  if (width <= 32) {
    const word = view.getUint32(at, true);
    return width === 16 ? word & 0xffff : word;
  }
  const low =
    laneBytes(slot.width) === 8 ? view.getBigUint64(at, true) : BigInt(view.getUint32(at, true));
  if (width === 64 || slot.width !== 128) return low;
  return (view.getBigUint64(at + halfBytes, true) << 64n) | low;
}

function constantBits(bits: bigint, width: RegisterWidth): LaneValue {
  if (width === 'pred') return bits === 0n ? 0 : 1;
  const cut = BigInt.asUintN(width, bits);
  return width <= 32 ? Number(cut) : cut;
}

function writeSlot(view: DataView, at: number, slot: Slot, value: LaneValue): void {
  if (slot.width === 'pred') return view.setUint32(at, Number(value) === 0 ? 0 : trueBits, true);
  if (slot.width <= 32) {
    const word = Number(BigInt.asUintN(slot.width, BigInt(value)));
    return view.setUint32(at, word, true);
  }
  const bits = BigInt(value);
  view.setBigUint64(at, BigInt.asUintN(64, bits), true);
  if (slot.width === 128) view.setBigUint64(at + halfBytes, bits >> 64n, true);
}

/**
 * Carries out one operation by the definition of its instruction, in the lanes of the mask; the others stay as they
 * are.
 *
 * @param view a view of the memory with the registers
 * @param registers the byte at which the registers of the warp begin
 */
export function runLaneByLane(
  view: DataView,
  { instruction, guard, destinations, sources }: LaneOperation,
  registers: number,
  lanes: number,
): void {
  const addressOf = (slot: Slot, lane: number): number =>
    registers + slot.offset + lane * laneBytes(slot.width);
  const read = (source: Source, width: RegisterWidth, lane: number): LaneValue =>
    'bits' in source
      ? constantBits(source.bits, width)
      : readSlot(view, addressOf(source, lane), source, width);
  for (let lane = 0; lane < warpLanes; lane++) {
    if (((lanes >>> lane) & 1) === 0) continue;
    if (guard !== null && (read(guard.slot, 'pred', lane) === 0) !== guard.isNegated) continue;
    const values = sources.map((source, i) => read(source, instruction.sources[i], lane));
    const evaluated = instruction.evaluate(...values);
    const results = typeof evaluated === 'object' ? evaluated : [evaluated];
    destinations.forEach((slot, i) => {
      if (slot !== null) writeSlot(view, addressOf(slot, lane), slot, results[i]);
    });
  }
}

/** A compiler of operations on registers in one memory. */
export interface Compiler {
  /**
   * Compiles each of the stretches to a function that runs its operations in order. All are in one WebAssembly
   * module, so that many cost little more than one; those for a part of a warp's lanes are compiled on first use.
   * An instruction that is not written in SIMD runs lane by lane, by its definition.
   */
  readonly compileAll: (
    stretches: readonly (readonly LaneOperation[])[],
  ) => readonly RunOperations[];
  /** `compileAll` of one stretch. */
  readonly compile: (operations: readonly LaneOperation[]) => RunOperations;
  /** Statistics of everything compiled so far. */
  readonly statistics: () => CompilerStatistics;
}

/** Number of operations given to a compiler. */
interface CompilerStatistics {
  readonly operations: number;
  /** Number of these that run lane by lane, by the name of their instruction. */
  readonly laneByLane: ReadonlyMap<string, number>;
}

/** Operations that run in one function, or one that runs lane by lane. */
type Piece = readonly EmittedOperation[] | LaneOperation;

function isEmitted(piece: Piece): piece is readonly EmittedOperation[] {
  return Array.isArray(piece);
}

/**
 * Maximum number of operations of one function: beyond it the optimising compiler's time grows faster than the
 * savings by registers that stay in variables.
 */
const mostOperations = 512;

/**
 * Divides operations into pieces.
 * @param emit gives the operation with its code, or null where its instruction is not written in SIMD
 */
function piecesOf(
  operations: readonly LaneOperation[],
  emit: (operation: LaneOperation) => EmittedOperation | null,
): Piece[] {
  const pieces: Piece[] = [];
  let open: EmittedOperation[] = [];
  const close = (): void => {
    if (open.length > 0) pieces.push(open);
    open = [];
  };
  for (const operation of operations) {
    const emitted = emit(operation);
    if (emitted === null) {
      close();
      pieces.push(operation);
      continue;
    }
    open.push(emitted);
    if (open.length === mostOperations) close();
  }
  close();
  return pieces;
}

type CompiledFunction = (registers: number, lanes: number) => void;

const allLanes = -1;

/** A view of a memory, which has another buffer once it has grown. */
function viewOf(memory: WebAssembly.Memory): () => DataView {
  let view = new DataView(memory.buffer);
  return () => {
    if (view.buffer !== memory.buffer) view = new DataView(memory.buffer);
    return view;
  };
}

/** Counts what is compiled. */
class CompilationCount {
  #operations = 0;
  readonly #laneByLane = new Map<string, number>();

  add(operations: readonly LaneOperation[], pieces: readonly Piece[]): void {
    this.#operations += operations.length;
    for (const piece of pieces) {
      if (isEmitted(piece)) continue;
      const { name } = piece.instruction;
      this.#laneByLane.set(name, (this.#laneByLane.get(name) ?? 0) + 1);
    }
  }

  statistics(): CompilerStatistics {
    return { operations: this.#operations, laneByLane: new Map(this.#laneByLane) };
  }
}

/**
 * A compiler for the registers in `memory`, which is not shared.
 *
 * @param place copies tables that the code reads, less than 2^19 bytes, into the memory during compilation
 * and returns their byte address; they must stay there as long as the compiled code runs
 */
export function createCompiler(
  memory: WebAssembly.Memory,
  place: (table: ArrayBufferView) => number,
): Compiler {
  const library = createLibrary(place);
  const templateOf = createTemplates(library);
  const emit = (operation: LaneOperation): EmittedOperation | null => {
    const { emit: code } = operation.instruction;
    return code === null ? null : { operation, template: templateOf(code, operation) };
  };
  const count = new CompilationCount();
  const currentView = viewOf(memory);

  function instantiate(
    functions: readonly (readonly EmittedOperation[])[],
    variant: Variant,
  ): CompiledFunction[] {
    if (functions.length === 0) return [];
    const written = functions.map((operations) => stretchFunction(library, operations, variant));
    const module = new WebAssembly.Module(moduleBytes(library.subroutines(), written));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    return functions.map((_, i) => exports[`${i}`] as CompiledFunction);
  }

  function compileAll(stretches: readonly (readonly LaneOperation[])[]): RunOperations[] {
    const pieces = stretches.map((operations) => piecesOf(operations, emit));
    stretches.forEach((operations, i) => count.add(operations, pieces[i]));
    const functions = pieces.flat().filter(isEmitted);
    const all = instantiate(functions, 'all');
    const masked = lazily(() => instantiate(functions, 'masked'));
    const indices = new Map(functions.map((piece, i) => [piece, i]));

    const runPiece = (piece: Piece): RunOperations => {
      if (!isEmitted(piece))
        return (registers, lanes) => runLaneByLane(currentView(), piece, registers, lanes);
      const index = indices.get(piece) ?? 0;
      const whole = all[index];
      return (registers, lanes) => {
        if ((lanes | 0) === allLanes) whole(registers, lanes);
        else masked()[index](registers, lanes);
      };
    };
    return pieces.map((ofStretch) => {
      const run = ofStretch.map(runPiece);
      if (run.length === 1) return run[0];
      return (registers, lanes) => {
        for (const piece of run) piece(registers, lanes);
      };
    });
  }

  return {
    compileAll,
    compile: (operations) => compileAll([operations])[0],
    statistics: () => count.statistics(),
  };
}
