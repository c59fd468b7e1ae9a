import {
  allLanes,
  swizzleAddress,
  type Fragment,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { tileQueries } from '../thread-blocks.js';
import { warpRows } from '../../online-softmax/units.js';
import {
  awaitTensorMemory,
  leaveTensorMemory,
  type ProgramContext,
  setUp,
  tensorAddressRegisters,
} from './setup.js';
import { swizzleOf } from './plan.js';
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
/** Columns of O that the warp has in its registers at a time. */
const pieceColumns = 16;
const outputBytes = 2;
/** Words of one st.shared. */
const storedWords = 4;

/** A correction warp's values for 32 rows at the end of a tile. */
interface RowStatistics {
  readonly sums: Fragment;
  readonly maxima: Fragment;
}

/**
 * A correction warp: rescales 32 rows of O where a maximum grew, and at the end normalises O, stages it
 * for the epilogue and writes the LSE. Source: `correction_loop`, `correction_rescale` and
 * `correction_epilogue` in flash_fwd_sm100.py.
 */
export function* correctionWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles, rows, lse } = context;
  const { barriers, addresses, columns, stages, shape, isaFences, o } = plan;
  const quarter = quarterOf(place);
  const firstRow = quarter * warpRows;
  const lane = firstRow * 0x10000;
  const tensor = tensorAddressRegisters();
  let outputFull: Parity = 0;
  let stagedEmpty: Parity = 1;

  const awaitStatistics = (stage: number, what: string) =>
    statistics('bar.sync', stage, quarter, `statistics full: correction waits for ${what}`);
  const releaseStatistics = (stage: number, what: string) =>
    arriveOn(
      barriers.statisticsEmpty,
      stage,
      place.cta,
      allLanes,
      `statistics empty: correction releases ${what}`,
    );
  function* releaseOutput(stage: number, what: string): WarpProgram {
    if (isaFences)
      yield { op: 'tcgen05.fence::before_thread_sync', site: 'O: fence before arriving' };
    const site = `P full, O rescaled: correction arrives ${what}`;
    yield arriveOn(barriers.weightsFull, stage, leader, allLanes, site);
  }
  function* awaitOrder(): WarpProgram {
    if (isaFences) yield { op: 'tcgen05.fence::after_thread_sync', site: 'O: fence after waiting' };
  }
  const rowAddresses = (first: number, stage: number): Int32Array<ArrayBuffer> =>
    laneAddresses(first + (stage * tileQueries + firstRow) * wordBytes);

  function* loadPiece(stage: number, column: number, fragment: Fragment): WarpProgram {
    yield {
      op: 'tcgen05.ld',
      transfer: { shape: '32x32b', repeat: pieceColumns },
      address: tensor.words[0] + lane + columns.o[stage] + column,
      fragment,
      name: 'O',
      site: 'O: loaded',
    };
    if (isaFences) yield { op: 'tcgen05.wait::ld', site: 'O: loads awaited' };
  }

  function* rescale(stage: number, alphas: Fragment): WarpProgram {
    for (let column = 0; column < shape.vDim; column += pieceColumns) {
      const piece = registers(pieceColumns);
      yield* loadPiece(stage, column, piece);
      yield {
        op: 'registers',
        reads: [piece],
        site: 'O: rescaled',
        execute: () => rows.rescale(piece.words, alphas.words),
      };
      yield {
        op: 'tcgen05.st',
        transfer: { shape: '32x32b', repeat: pieceColumns },
        address: tensor.words[0] + lane + columns.o[stage] + column,
        fragment: piece,
        name: 'O',
        site: 'O: stored',
      };
    }
    yield { op: 'tcgen05.wait::st', site: 'O: stores awaited' };
  }

  function* correct(stage: number): WarpProgram {
    const alphas = registers(1);
    let ballot = 0;
    yield awaitStatistics(stage, 'α');
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: rowAddresses(addresses.scale, stage),
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
    yield* awaitOrder();
    if (ballot !== 0) yield* rescale(stage, alphas);
    yield* releaseOutput(stage, 'after a block');
    yield releaseStatistics(stages - 1 - stage, 'α');
  }

  /** Stages O times the factors, rounded, where the epilogue stores it from. */
  function* stageOutput(stage: number, factors: Uint32Array<ArrayBuffer>): WarpProgram {
    for (let column = 0; column < shape.vDim; column += pieceColumns) {
      const piece = registers(pieceColumns);
      const { words } = registers((pieceColumns * outputBytes) / wordBytes);
      yield* loadPiece(stage, column, piece);
      yield {
        op: 'registers',
        reads: [piece],
        site: 'O: normalised',
        execute: () => rows.normalise(piece.words, factors, words),
      };
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
    yield { op: 'fence.proxy.async', site: 'O: fence before the epilogue' };
  }

  function* finishStage(
    stage: number,
  ): Generator<ReturnType<typeof releaseStatistics>, RowStatistics, void> {
    const statistics = { sums: registers(1), maxima: registers(1) };
    let factors = registers(1).words;
    yield awaitStatistics(stage, 'sums');
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: rowAddresses(addresses.scale, stage),
      fragment: statistics.sums,
      name: 'row sums',
      site: 'row sums: read',
    };
    yield {
      op: 'ld.shared',
      words: 1,
      addresses: rowAddresses(addresses.maxima, stage),
      fragment: statistics.maxima,
      name: 'row maxima',
      site: 'row maxima: read',
    };
    yield releaseStatistics(stage, 'sums');
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
    yield waitFor(barriers.outputFull, stage, outputFull, 'O full: correction waits');
    yield* awaitOrder();
    yield waitFor(barriers.stagedEmpty, stage, stagedEmpty, 'O stored: correction waits');
    yield* stageOutput(stage, factors);
    yield* releaseOutput(stage, 'after a tile');
    yield arriveOn(barriers.stagedFull, stage, place.cta, allLanes, 'O staged: correction arrives');
    return statistics;
  }

  function* storeLse(tile: WorkTile, stage: number, { sums, maxima }: RowStatistics): WarpProgram {
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
    const first = firstQueryOf(plan, tile, stage, place.cta) + firstRow;
    const addresses = Int32Array.from({ length: warpRows }, (_, row) =>
      first + row < shape.queries ? tile.head * shape.queries + first + row : -1,
    );
    yield { op: 'st.global', memory: lse, addresses, fragment, name: 'LSE', site: 'LSE: stored' };
  }

  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 64 };
  yield* awaitTensorMemory(context, tensor);
  for (let stage = 0; stage < stages; stage++) yield* releaseOutput(stage, 'at the start');
  for (const tile of tiles) {
    yield awaitStatistics(0, 'the first block');
    yield releaseStatistics(0, 'the first block');
    if (stages === 2) yield awaitStatistics(1, 'the first block');
    for (let i = 1; i < tile.blocks; i++)
      for (let stage = 0; stage < stages; stage++) yield* correct(stage);
    if (stages === 2) yield releaseStatistics(1, 'the last block');
    const all: RowStatistics[] = [];
    for (let stage = 0; stage < stages; stage++) all.push(yield* finishStage(stage));
    outputFull = flip(outputFull);
    stagedEmpty = flip(stagedEmpty);
    for (let stage = 0; stage < stages; stage++) yield* storeLse(tile, stage, all[stage]);
  }
  yield waitFor(
    barriers.stagedEmpty,
    stages - 1,
    stagedEmpty,
    'O stored: correction waits at its end',
  );
  yield* leaveTensorMemory(context);
}
