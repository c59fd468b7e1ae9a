import type { Instruction, WarpProgram } from '../../../../src/machine/index.js';

/** An instruction of a warp that comes earlier or later than it should. */
export interface Move {
  readonly direction: 'early' | 'late';
  readonly site: string;
  /**
   * Early: it comes before the nearest run of these that it should follow. Late: it comes after the
   * first of these that follows, or at the end.
   */
  readonly past: string;
  readonly description: string;
  /** Origin of the mistake. */
  readonly source?: string;
}

/**
 * Signals sent too early and waits that come too late. None moves over code on registers whose
 * results the warp's program reads before the instruction's turn comes.
 */
export const moves: readonly Move[] = [
  {
    direction: 'late',
    site: 'statistics full: correction waits for α',
    past: 'α: read',
    description: 'α is read before the barrier that says that it is there',
    source: 'flashinfer-ai/flashinfer #5252',
  },
  {
    direction: 'late',
    site: 'statistics full: correction waits for sums',
    past: 'row maxima: read',
    source: 'flashinfer-ai/flashinfer #5252',
    description: 'sums and maxima are read before the barrier that says that they are there',
  },
  {
    direction: 'early',
    site: 'statistics full: softmax arrives with α',
    past: 'α: stored',
    description: 'α is announced before it is stored',
  },
  {
    direction: 'early',
    site: 'statistics full: softmax arrives with sums',
    past: 'row maxima: stored',
    description: 'the maxima are announced before they are stored',
  },
  {
    direction: 'early',
    site: 'statistics empty: correction releases sums',
    past: 'row maxima: read',
    description: 'the maxima are given back before they are read',
  },
  {
    direction: 'early',
    site: 'P full, O rescaled: softmax arrives',
    past: 'P: stored',
    description: 'the first 3/4 of P are announced before they are stored',
  },
  {
    direction: 'early',
    site: 'P full, last quarter: softmax arrives',
    past: 'P: stored',
    description: 'the last quarter of P is announced before it is stored',
  },
  {
    direction: 'late',
    site: 'P: stores awaited',
    past: 'P full, O rescaled: softmax arrives',
    description: 'the stores of the first 3/4 of P are awaited after they are announced',
  },
  {
    direction: 'late',
    site: 'P: last stores awaited',
    past: 'P full, last quarter: softmax arrives',
    description: 'the stores of the last quarter of P are awaited after they are announced',
  },
  {
    direction: 'late',
    site: 'O: stores awaited',
    past: 'P full, O rescaled: correction arrives after a block',
    description: 'the stores of the rescaled O are awaited after they are announced',
  },
  {
    direction: 'late',
    site: 'O: fence before the epilogue',
    past: 'O staged: correction arrives',
    description: 'the staged O is fenced after it is announced',
  },
  {
    direction: 'late',
    site: 'S full: softmax waits',
    past: 'S: loaded',
    description: 'a part of S is loaded before the barrier that says that S is there',
  },
  {
    direction: 'late',
    site: 'statistics empty: softmax waits',
    past: 'α: stored',
    description: 'α is stored before the last one has been read',
  },
  {
    direction: 'late',
    site: 'O full: correction waits',
    past: 'O: loaded',
    description: 'a part of O is loaded before the barrier that says that O is there',
  },
  {
    direction: 'late',
    site: 'O stored: correction waits',
    past: 'O: staged',
    description: 'a part of O is staged before the last one has been stored',
  },
  {
    direction: 'late',
    site: 'O staged: epilogue waits',
    past: 'O: bulk store',
    description: 'a part of O is stored before the barrier that says that it is staged',
  },
  {
    direction: 'late',
    site: 'O: bulk stores awaited',
    past: 'O stored: epilogue arrives',
    description: "O's buffer is given back before the stores have read it",
  },
  {
    direction: 'late',
    site: 'Q full: MMA waits',
    past: 'S: multiplied',
    description: 'an MMA reads Q before the barrier that says that it is there',
  },
  {
    direction: 'late',
    site: 'K/V full: MMA waits',
    past: 'S: multiplied',
    description: 'MMAs read K and V before the barrier that says that K is there',
  },
  {
    direction: 'late',
    site: 'P full, O rescaled: MMA waits',
    past: 'O: multiplied',
    description: 'an MMA reads P and adds to O before both are there',
  },
  {
    direction: 'late',
    site: 'P full, last quarter: MMA waits',
    past: 'O: multiplied',
    description: 'an MMA reads the last quarter of P before it is there',
  },
  {
    direction: 'early',
    site: 'S full: MMA commits',
    past: 'S: multiplied',
    description: 'S is announced before its MMAs are issued',
  },
  {
    direction: 'early',
    site: 'O full: MMA commits',
    past: 'O: multiplied',
    description: "O is announced before the last quarter's MMAs are issued",
  },
  {
    direction: 'early',
    site: 'K/V empty: MMA releases K',
    past: 'S: multiplied',
    description: "K is given back before the last stage's MMAs are issued",
  },
  {
    direction: 'early',
    site: 'K/V empty: MMA releases V',
    past: 'O: multiplied',
    description: "V is given back before the last quarter's MMAs are issued",
  },
  {
    direction: 'late',
    site: 'K/V empty: load waits',
    past: 'K: loaded',
    description: 'a box of K is loaded into a buffer that may be in use',
  },
  {
    direction: 'late',
    site: 'K/V empty: load waits',
    past: 'K/V full: load expects bytes',
    description: 'bytes are expected before the buffer is empty',
  },
  {
    direction: 'late',
    site: 'Q empty: load waits',
    past: 'Q: loaded',
    description: 'a box of Q is loaded into a buffer that may be in use',
  },
  {
    direction: 'late',
    site: 'Q free of O: load waits',
    past: 'Q: loaded',
    description: 'a box of Q is loaded over an O that may not have been stored',
  },
  {
    direction: 'late',
    site: 'barriers initialised: fence',
    past: 'barriers initialised: cluster arrives',
    description: 'the initialisation is fenced after the arrival that makes it known',
  },
  {
    direction: 'late',
    site: 'tensor memory: all have left',
    past: 'tensor memory: freed',
    description: 'tensor memory is freed before all have left it',
  },
];

function* moveEarly({ site, past }: Move, program: WarpProgram): WarpProgram {
  let held: Instruction[] = [];
  let isInRun = false;
  for (const instruction of program) {
    const isPast = instruction.site === past;
    if (instruction.site === site) {
      yield instruction;
      yield* held;
      held = [];
    } else {
      if (isPast && !isInRun) {
        yield* held;
        held = [];
      }
      if (isPast || held.length > 0) held.push(instruction);
      else yield instruction;
    }
    isInRun = isPast;
    // Code on registers decides how its warp goes on, so it is not held back.
    if (instruction.op === 'registers') {
      yield* held;
      held = [];
    }
  }
  yield* held;
}

function* moveLate({ site, past }: Move, program: WarpProgram): WarpProgram {
  let held: Instruction[] = [];
  for (const instruction of program) {
    if (instruction.site === site) {
      held.push(instruction);
      continue;
    }
    yield instruction;
    if (instruction.site !== past) continue;
    yield* held;
    held = [];
  }
  yield* held;
}

/** A warp's program with an instruction moved. */
export function applyMove(move: Move, program: WarpProgram): WarpProgram {
  return move.direction === 'early' ? moveEarly(move, program) : moveLate(move, program);
}
