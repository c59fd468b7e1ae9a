import { swizzleAddress, type Fragment, type WarpProgram } from '../../../src/machine/index.js';
import { warpRows } from '../../online-softmax/units.js';
import { swizzleOf, type ProgramPlan } from './plan.js';
import type { RowArithmetic } from './rows/index.js';
import { tensorAddressRegisters, type ProgramContext } from './setup.js';
import { quarterOf, registers } from './signals.js';

const wordBytes = 4;
/** Columns of O that a correction warp has in its registers at a time. */
const pieceColumns = 16;
const outputBytes = 2;
/** Words of one st.shared. */
const storedWords = 4;

/** Stores a piece, rounded, in shared memory, where the epilogue stores it from. */
function* stagePiece(
  { addresses, o }: ProgramPlan,
  stage: number,
  firstRow: number,
  { words, column }: { readonly words: Uint32Array<ArrayBuffer>; readonly column: number },
): WarpProgram {
  const byte = column * outputBytes;
  const box = addresses.o[stage] + Math.floor(byte / o.boxBytes) * o.boxBytes * o.rows;
  const perLane = words.length / warpRows;
  for (let word = 0; word < perLane; word += storedWords) {
    const fragment = registers(storedWords);
    const at = (byte % o.boxBytes) + word * wordBytes;
    for (let row = 0; row < warpRows; row++)
      fragment.words.set(
        words.subarray(row * perLane + word, row * perLane + word + storedWords),
        row * storedWords,
      );
    yield {
      op: 'st.shared',
      words: storedWords,
      fragment,
      name: 'O',
      site: 'O: staged',
      addresses: Int32Array.from({ length: warpRows }, (_, row) =>
        swizzleAddress(swizzleOf(o.boxBytes), box + (firstRow + row) * o.boxBytes + at),
      ),
    };
  }
}

/** 32 rows of O, which a correction warp takes from tensor memory piece by piece. */
export class OutputPieces {
  readonly tensor = tensorAddressRegisters();
  readonly #plan: ProgramPlan;
  readonly #rows: RowArithmetic;
  readonly #firstRow: number;
  readonly #lane: number;

  constructor({ plan, place, rows }: Pick<ProgramContext, 'plan' | 'place' | 'rows'>) {
    this.#plan = plan;
    this.#rows = rows;
    this.#firstRow = quarterOf(place) * warpRows;
    this.#lane = this.#firstRow * 0x10000;
  }

  /** Multiplies the rows by their factors α. */
  *rescale(stage: number, alphas: Fragment): WarpProgram {
    const { shape, columns } = this.#plan;
    for (let column = 0; column < shape.vDim; column += pieceColumns) {
      const piece = registers(pieceColumns);
      yield* this.#loadPiece(stage, column, piece);
      yield {
        op: 'registers',
        reads: [piece],
        site: 'O: rescaled',
        execute: () => this.#rows.rescale(piece.words, alphas.words),
      };
      yield {
        op: 'tcgen05.st',
        transfer: { shape: '32x32b', repeat: pieceColumns },
        address: this.tensor.words[0] + this.#lane + columns.o[stage] + column,
        fragment: piece,
        name: 'O',
        site: 'O: stored',
      };
    }
    yield { op: 'tcgen05.wait::st', site: 'O: stores awaited' };
  }

  /** Stages O times the factors, rounded, where the epilogue stores it from. */
  *stage(stage: number, factors: Uint32Array<ArrayBuffer>): WarpProgram {
    const plan = this.#plan;
    for (let column = 0; column < plan.shape.vDim; column += pieceColumns) {
      const piece = registers(pieceColumns);
      const { words } = registers((pieceColumns * outputBytes) / wordBytes);
      yield* this.#loadPiece(stage, column, piece);
      yield {
        op: 'registers',
        reads: [piece],
        site: 'O: normalised',
        execute: () => this.#rows.normalise(piece.words, factors, words),
      };
      yield* stagePiece(plan, stage, this.#firstRow, { words, column });
    }
    yield { op: 'fence.proxy.async', site: 'O: fence before the epilogue' };
  }

  *#loadPiece(stage: number, column: number, fragment: Fragment): WarpProgram {
    const { columns, isaFences } = this.#plan;
    yield {
      op: 'tcgen05.ld',
      transfer: { shape: '32x32b', repeat: pieceColumns },
      address: this.tensor.words[0] + this.#lane + columns.o[stage] + column,
      fragment,
      name: 'O',
      site: 'O: loaded',
    };
    if (isaFences) yield { op: 'tcgen05.wait::ld', site: 'O: loads awaited' };
  }
}
