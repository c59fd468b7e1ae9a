import { lazily } from '../../reuse/index.js';
import type { LaneOperation, RunOperations } from '../program/index.js';
import { runLaneByLane } from './lane-by-lane.js';
import { type EmittedOperation, stretchFunction, type Variant } from './stretch.js';
import { createTemplates } from './template.js';
import { createLibrary, moduleBytes } from '../../isa/webassembly/index.js';

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
export interface CompilerStatistics {
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
  let operationCount = 0;
  const laneByLane = new Map<string, number>();
  let view = new DataView(memory.buffer);
  const currentView = (): DataView => {
    // Memory that grew has another buffer.
    if (view.buffer !== memory.buffer) view = new DataView(memory.buffer);
    return view;
  };

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

  function count(operations: readonly LaneOperation[], pieces: readonly Piece[]): void {
    operationCount += operations.length;
    for (const piece of pieces) {
      if (isEmitted(piece)) continue;
      const { name } = piece.instruction;
      laneByLane.set(name, (laneByLane.get(name) ?? 0) + 1);
    }
  }

  function compileAll(stretches: readonly (readonly LaneOperation[])[]): RunOperations[] {
    const pieces = stretches.map((operations) => piecesOf(operations, emit));
    stretches.forEach((operations, i) => count(operations, pieces[i]));
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
    statistics: () => ({ operations: operationCount, laneByLane: new Map(laneByLane) }),
  };
}
