import {
  allLanes,
  byteStoreOf,
  electedLane,
  type Fragment,
  type Instruction,
  type InstructionCounts,
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
import { scoreColumns, type ProgramPlan } from './plan.js';
import {
  createSoftmaxRegisters,
  type FragmentRegisters,
  type SoftmaxIssues,
  type SoftmaxRegisters,
} from './rows/index.js';
import {
  arriveOn,
  flip,
  laneAddresses,
  leader,
  quarterOf,
  statistics,
  waitFor,
  type Parity,
} from './signals.js';
import { firstQueryOf, visibleColumns } from './tiles.js';

const wordBytes = 4;
/** Columns of S that one tcgen05.ld loads into a lane. */
const loadedColumns = 32;
const parts = scoreColumns / loadedColumns;
/** Parts of P that are announced to the MMA warp first. */
const firstParts = 3;

/** Division of a row by a softmax warp's tcgen05.ld and tcgen05.st. */
export function softmaxFragments({
  elementBytes,
}: Pick<ProgramPlan, 'elementBytes'>): FragmentRegisters {
  return { scores: loadedColumns, weights: (loadedColumns * elementBytes) / wordBytes };
}

/** A part [lane][register] of registers that hold all parts of a row. */
function partOf(registers: Uint32Array<ArrayBuffer>, part: number): Fragment {
  const size = registers.length / parts;
  return byteStoreOf(registers.subarray(part * size, (part + 1) * size));
}

/** The work of a softmax warp on 32 rows of its stage. */
class RowSoftmax {
  readonly tensor = tensorAddressRegisters();
  readonly #context: ProgramContext;
  readonly #stage: number;
  readonly #lane: number;
  readonly #fragments: FragmentRegisters;
  readonly #scaleAddresses: Int32Array<ArrayBuffer>;
  readonly #maximaAddresses: Int32Array<ArrayBuffer>;
  #scoresFull: Parity = 0;
  #statisticsEmpty: Parity = 1;

  constructor(context: ProgramContext, stage: number, firstRow: number) {
    const { addresses } = context.plan;
    const rowOfStage = (stage * tileQueries + firstRow) * wordBytes;
    this.#context = context;
    this.#stage = stage;
    this.#lane = firstRow * 0x10000;
    this.#fragments = softmaxFragments(context.plan);
    this.#scaleAddresses = laneAddresses(addresses.scale + rowOfStage);
    this.#maximaAddresses = laneAddresses(addresses.maxima + rowOfStage);
  }

  /** Waits until the correction warps have read what was passed to them before. */
  awaitStatistics(): Instruction {
    const { statisticsEmpty } = this.#context.plan.barriers;
    const site = 'statistics empty: softmax waits';
    return waitFor(statisticsEmpty, this.#stage, this.#statisticsEmpty, site);
  }

  /** The next wait for the correction warps is for the other phase. */
  passStatistics(): void {
    this.#statisticsEmpty = flip(this.#statisticsEmpty);
  }

  /** Turns a block of S into P, and passes α. */
  *step(
    registers: SoftmaxRegisters,
    firstQuery: number,
    block: number,
    isFirst: boolean,
  ): WarpProgram {
    const { plan, rows } = this.#context;
    yield* this.#loadScores(registers);
    this.#scoresFull = flip(this.#scoresFull);
    const { isMasked, ...visible } = visibleColumns(plan, firstQuery, warpRows, block);
    let issues: SoftmaxIssues | null = null;
    const issued = (part: keyof SoftmaxIssues) => (): InstructionCounts => issues![part];
    yield {
      op: 'registers',
      reads: [byteStoreOf(registers.scores)],
      site: 'softmax: maxima',
      execute: () => {
        issues = rows.softmax(registers, isMasked ? visible : null, isFirst);
        return issues.maximum;
      },
    };
    if (!isFirst)
      yield {
        op: 'st.shared',
        words: 1,
        addresses: this.#scaleAddresses,
        fragment: byteStoreOf(registers.alphas),
        name: 'α',
        site: 'α: stored',
      };
    yield this.#signalStatistics('α');
    yield {
      op: 'registers',
      reads: [],
      site: 'softmax: exponentials',
      execute: issued('weights'),
    };
    yield* this.#storeWeights(registers);
    yield this.awaitStatistics();
    this.passStatistics();
    yield { op: 'registers', reads: [], site: 'softmax: row sums', execute: issued('rowSum') };
  }

  /** Passes the sums and maxima of a tile's rows. */
  *passRows(registers: SoftmaxRegisters): WarpProgram {
    yield {
      op: 'st.shared',
      words: 1,
      addresses: this.#scaleAddresses,
      fragment: byteStoreOf(registers.sums),
      name: 'row sums',
      site: 'row sums: stored',
    };
    yield {
      op: 'st.shared',
      words: 1,
      addresses: this.#maximaAddresses,
      fragment: byteStoreOf(registers.maxima),
      name: 'row maxima',
      site: 'row maxima: stored',
    };
    yield this.#signalStatistics('sums');
  }

  #signalStatistics(what: string): Instruction {
    const site = `statistics full: softmax arrives with ${what}`;
    return statistics('bar.arrive', this.#stage, quarterOf(this.#context.place), site);
  }

  *#loadScores({ scores }: SoftmaxRegisters): WarpProgram {
    const { barriers, columns, isaFences } = this.#context.plan;
    yield waitFor(barriers.scoresFull, this.#stage, this.#scoresFull, 'S full: softmax waits');
    if (isaFences) yield { op: 'tcgen05.fence::after_thread_sync', site: 'S: fence after waiting' };
    for (let part = 0; part < parts; part++)
      yield {
        op: 'tcgen05.ld',
        transfer: { shape: '32x32b', repeat: this.#fragments.scores },
        address: this.tensor.words[0] + this.#lane + columns.s[this.#stage] + part * loadedColumns,
        fragment: partOf(scores, part),
        name: 'S',
        site: 'S: loaded',
      };
    if (isaFences) yield { op: 'tcgen05.wait::ld', site: 'S: loads awaited' };
  }

  *#signalWeights(isLast: boolean): WarpProgram {
    const { barriers, isaFences } = this.#context.plan;
    yield { op: 'tcgen05.wait::st', site: isLast ? 'P: last stores awaited' : 'P: stores awaited' };
    if (isaFences)
      yield { op: 'tcgen05.fence::before_thread_sync', site: 'P: fence before arriving' };
    if (!isLast) {
      const site = 'P full, O rescaled: softmax arrives';
      yield arriveOn(barriers.weightsFull, this.#stage, leader, allLanes, site);
      return;
    }
    yield { op: 'bar.warp.sync', site: 'P: lanes joined' };
    const site = 'P full, last quarter: softmax arrives';
    yield arriveOn(barriers.weightsLast, this.#stage, leader, electedLane, site);
  }

  *#storeWeights({ weights }: SoftmaxRegisters): WarpProgram {
    const { columns } = this.#context.plan;
    for (let part = 0; part < parts; part++) {
      yield {
        op: 'tcgen05.st',
        transfer: { shape: '32x32b', repeat: this.#fragments.weights },
        address:
          this.tensor.words[0] +
          this.#lane +
          columns.p[this.#stage] +
          part * this.#fragments.weights,
        fragment: partOf(weights, part),
        name: 'P',
        site: 'P: stored',
      };
      if (part + 1 === firstParts) yield* this.#signalWeights(false);
    }
    yield* this.#signalWeights(true);
  }
}

/**
 * A warp of softmax 0 or 1: turns 32 rows of S into P, and passes α, and at the end the rows' sums and
 * maxima, to the correction warps. Source: `softmax_loop` and `softmax_step` in flash_fwd_sm100.py.
 */
export function* softmaxWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles } = context;
  const stage = Math.floor(place.warp / 4);
  const firstRow = quarterOf(place) * warpRows;
  const work = new RowSoftmax(context, stage, firstRow);
  yield* setUp(context);
  if (stage >= plan.stages) {
    // With one stage the second group is idle, but it joins the warps that use tensor memory.
    yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
    return;
  }
  yield { op: 'setmaxnreg', action: 'inc', registers: 192 };
  yield* awaitTensorMemory(context, work.tensor);
  for (const tile of tiles) {
    const registers = createSoftmaxRegisters(plan.configuration, plan.format);
    const firstQuery = firstQueryOf(plan, tile, stage, place.cta) + firstRow;
    yield work.awaitStatistics();
    work.passStatistics();
    for (let i = 0; i < tile.blocks; i++)
      yield* work.step(registers, firstQuery, tile.lastBlock - i, i === 0);
    yield* work.passRows(registers);
  }
  yield work.awaitStatistics();
  yield* leaveTensorMemory(context);
}
