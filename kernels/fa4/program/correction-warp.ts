import {
  allLanes,
  type Fragment,
  type Instruction,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { tileQueries } from '../thread-blocks.js';
import { warpRows } from '../../online-softmax/units.js';
import { awaitTensorMemory, leaveTensorMemory, type ProgramContext, setUp } from './setup.js';
import { OutputPieces } from './output-pieces.js';
import {
  arriveOn,
  flip,
  laneAddresses,
  leader,
  quarterOf,
  registers,
  statistics,
  waitFor,
  type Parity,
} from './signals.js';
import { firstQueryOf, type WorkTile } from './tiles.js';

const wordBytes = 4;

/** A correction warp's values for 32 rows at the end of a tile. */
interface RowStatistics {
  readonly sums: Fragment;
  readonly maxima: Fragment;
}

/** The arrivals and waits of a correction warp, apart from those for O and its stores. */
class CorrectionSignals {
  readonly #context: ProgramContext;
  readonly #quarter: number;

  constructor(context: ProgramContext) {
    this.#context = context;
    this.#quarter = quarterOf(context.place);
  }

  awaitStatistics(stage: number, what: string): Instruction {
    const site = `statistics full: correction waits for ${what}`;
    return statistics('bar.sync', stage, this.#quarter, site);
  }

  releaseStatistics(stage: number, what: string): Instruction {
    const { plan, place } = this.#context;
    const site = `statistics empty: correction releases ${what}`;
    return arriveOn(plan.barriers.statisticsEmpty, stage, place.cta, allLanes, site);
  }

  *releaseOutput(stage: number, what: string): WarpProgram {
    const { isaFences, barriers } = this.#context.plan;
    if (isaFences)
      yield { op: 'tcgen05.fence::before_thread_sync', site: 'O: fence before arriving' };
    const site = `P full, O rescaled: correction arrives ${what}`;
    yield arriveOn(barriers.weightsFull, stage, leader, allLanes, site);
  }

  *awaitOrder(): WarpProgram {
    if (this.#context.plan.isaFences)
      yield { op: 'tcgen05.fence::after_thread_sync', site: 'O: fence after waiting' };
  }
}

/** The work of a correction warp on 32 rows. */
class RowCorrection {
  readonly #context: ProgramContext;
  readonly #signals: CorrectionSignals;
  readonly #output: OutputPieces;
  readonly #firstRow: number;
  #outputFull: Parity = 0;
  #stagedEmpty: Parity = 1;

  constructor(context: ProgramContext, signals: CorrectionSignals, output: OutputPieces) {
    this.#context = context;
    this.#signals = signals;
    this.#output = output;
    this.#firstRow = quarterOf(context.place) * warpRows;
  }

  /** Rescales O after a block. */
  *correct(stage: number): WarpProgram {
    const { plan, rows } = this.#context;
    const { addresses, stages } = plan;
    const alphas = registers(1);
    let ballot = 0;
    yield this.#signals.awaitStatistics(stage, 'α');
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: this.#rowAddresses(addresses.scale, stage),
      fragment: alphas,
      name: 'α',
      site: 'α: read',
    };
    yield {
      op: 'registers',
      reads: [alphas],
      site: 'correction: vote',
      execute: () => {
        const vote = rows.needsRescale(alphas.words);
        ballot = vote.ballot;
        return vote.issues;
      },
    };
    yield* this.#signals.awaitOrder();
    if (ballot !== 0) yield* this.#output.rescale(stage, alphas);
    yield* this.#signals.releaseOutput(stage, 'after a block');
    yield this.#signals.releaseStatistics(stages - 1 - stage, 'α');
  }

  /** Normalises O of a tile, stages it for the epilogue, and returns the statistics of its rows. */
  *finishStage(stage: number): Generator<Instruction, RowStatistics, void> {
    const { plan, place, rows } = this.#context;
    const { barriers, addresses } = plan;
    const statistics = { sums: registers(1), maxima: registers(1) };
    let factors = registers(1).words;
    yield this.#signals.awaitStatistics(stage, 'sums');
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: this.#rowAddresses(addresses.scale, stage),
      fragment: statistics.sums,
      name: 'row sums',
      site: 'row sums: read',
    };
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: this.#rowAddresses(addresses.maxima, stage),
      fragment: statistics.maxima,
      name: 'row maxima',
      site: 'row maxima: read',
    };
    yield this.#signals.releaseStatistics(stage, 'sums');
    yield {
      op: 'registers',
      reads: [statistics.sums],
      site: 'correction: normalisers',
      execute: () => {
        const result = rows.normalisers(statistics.sums.words);
        factors = result.factors;
        return result.issues;
      },
    };
    yield waitFor(barriers.outputFull, stage, this.#outputFull, 'O full: correction waits');
    yield* this.#signals.awaitOrder();
    yield waitFor(barriers.stagedEmpty, stage, this.#stagedEmpty, 'O stored: correction waits');
    yield* this.#output.stage(stage, factors);
    yield* this.#signals.releaseOutput(stage, 'after a tile');
    yield arriveOn(barriers.stagedFull, stage, place.cta, allLanes, 'O staged: correction arrives');
    return statistics;
  }

  *storeLse(tile: WorkTile, stage: number, { sums, maxima }: RowStatistics): WarpProgram {
    const { plan, place, rows, lse } = this.#context;
    const { shape } = plan;
    const fragment = registers(1);
    yield {
      op: 'registers',
      reads: [sums, maxima],
      site: 'correction: LSE',
      execute: () => {
        const logarithms = rows.logSumExp(maxima.words, sums.words);
        fragment.words.set(logarithms.lse);
        return logarithms.issues;
      },
    };
    const first = firstQueryOf(plan, tile, stage, place.cta) + this.#firstRow;
    const addresses = Int32Array.from({ length: warpRows }, (_, row) =>
      first + row < shape.queries ? tile.head * shape.queries + first + row : -1,
    );
    yield { op: 'st.global', memory: lse, addresses, fragment, name: 'LSE', site: 'LSE: stored' };
  }

  /** The next tile's O and its stores come in the other phases of their barriers. */
  endTile(): void {
    this.#outputFull = flip(this.#outputFull);
    this.#stagedEmpty = flip(this.#stagedEmpty);
  }

  /** Waits until the O of the last tile has been stored. */
  awaitLastStore(): Instruction {
    const { barriers, stages } = this.#context.plan;
    const site = 'O stored: correction waits at its end';
    return waitFor(barriers.stagedEmpty, stages - 1, this.#stagedEmpty, site);
  }

  #rowAddresses(first: number, stage: number): Int32Array<ArrayBuffer> {
    return laneAddresses(first + (stage * tileQueries + this.#firstRow) * wordBytes);
  }
}

/**
 * A correction warp: rescales 32 rows of O where a maximum grew, and at the end normalises O, stages it
 * for the epilogue and writes the LSE. Source: `correction_loop`, `correction_rescale` and
 * `correction_epilogue` in flash_fwd_sm100.py.
 */
export function* correctionWarp(context: ProgramContext): WarpProgram {
  const { plan, tiles } = context;
  const { stages } = plan;
  const signals = new CorrectionSignals(context);
  const output = new OutputPieces(context);
  const work = new RowCorrection(context, signals, output);
  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 64 };
  yield* awaitTensorMemory(context, output.tensor);
  for (let stage = 0; stage < stages; stage++) yield* signals.releaseOutput(stage, 'at the start');
  for (const tile of tiles) {
    yield signals.awaitStatistics(0, 'the first block');
    yield signals.releaseStatistics(0, 'the first block');
    if (stages === 2) yield signals.awaitStatistics(1, 'the first block');
    for (let i = 1; i < tile.blocks; i++)
      for (let stage = 0; stage < stages; stage++) yield* work.correct(stage);
    if (stages === 2) yield signals.releaseStatistics(1, 'the last block');
    const all: RowStatistics[] = [];
    for (let stage = 0; stage < stages; stage++) all.push(yield* work.finishStage(stage));
    work.endTile();
    for (let stage = 0; stage < stages; stage++) yield* work.storeLse(tile, stage, all[stage]);
  }
  yield work.awaitLastStore();
  yield* leaveTensorMemory(context);
}
