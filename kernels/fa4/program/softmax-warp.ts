import {
  allLanes,
  byteStoreOf,
  electedLane,
  type Fragment,
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

/**
 * A warp of softmax 0 or 1: turns 32 rows of S into P, and passes α, and at the end the rows' sums and
 * maxima, to the correction warps. Source: `softmax_loop` and `softmax_step` in flash_fwd_sm100.py.
 */
export function* softmaxWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles, rows } = context;
  const { barriers, addresses, columns, configuration, format, isaFences } = plan;
  const stage = Math.floor(place.warp / 4);
  const quarter = quarterOf(place);
  const firstRow = quarter * warpRows;
  const lane = firstRow * 0x10000;
  const rowOfStage = (stage * tileQueries + firstRow) * wordBytes;
  const scaleAddresses = laneAddresses(addresses.scale + rowOfStage);
  const maximaAddresses = laneAddresses(addresses.maxima + rowOfStage);
  const fragments = softmaxFragments(plan);
  const tensor = tensorAddressRegisters();
  let scoresFull: Parity = 0;
  let statisticsEmpty: Parity = 1;

  const awaitStatistics = () =>
    waitFor(barriers.statisticsEmpty, stage, statisticsEmpty, 'statistics empty: softmax waits');
  const signalStatistics = (what: string) =>
    statistics('bar.arrive', stage, quarter, `statistics full: softmax arrives with ${what}`);

  function* loadScores({ scores }: SoftmaxRegisters): WarpProgram {
    yield waitFor(barriers.scoresFull, stage, scoresFull, 'S full: softmax waits');
    if (isaFences) yield { op: 'tcgen05.fence::after_thread_sync', site: 'S: fence after waiting' };
    for (let part = 0; part < parts; part++)
      yield {
        op: 'tcgen05.ld',
        transfer: { shape: '32x32b', repeat: fragments.scores },
        address: tensor.words[0] + lane + columns.s[stage] + part * loadedColumns,
        fragment: partOf(scores, part),
        name: 'S',
        site: 'S: loaded',
      };
    if (isaFences) yield { op: 'tcgen05.wait::ld', site: 'S: loads awaited' };
  }

  function* signalWeights(isLast: boolean): WarpProgram {
    yield { op: 'tcgen05.wait::st', site: isLast ? 'P: last stores awaited' : 'P: stores awaited' };
    if (isaFences)
      yield { op: 'tcgen05.fence::before_thread_sync', site: 'P: fence before arriving' };
    if (!isLast) {
      const site = 'P full, O rescaled: softmax arrives';
      yield arriveOn(barriers.weightsFull, stage, leader, allLanes, site);
      return;
    }
    yield { op: 'bar.warp.sync', site: 'P: lanes joined' };
    const site = 'P full, last quarter: softmax arrives';
    yield arriveOn(barriers.weightsLast, stage, leader, electedLane, site);
  }

  function* storeWeights({ weights }: SoftmaxRegisters): WarpProgram {
    for (let part = 0; part < parts; part++) {
      yield {
        op: 'tcgen05.st',
        transfer: { shape: '32x32b', repeat: fragments.weights },
        address: tensor.words[0] + lane + columns.p[stage] + part * fragments.weights,
        fragment: partOf(weights, part),
        name: 'P',
        site: 'P: stored',
      };
      if (part + 1 === firstParts) yield* signalWeights(false);
    }
    yield* signalWeights(true);
  }

  function* softmaxStep(
    registers: SoftmaxRegisters,
    firstQuery: number,
    block: number,
    isFirst: boolean,
  ): WarpProgram {
    yield* loadScores(registers);
    scoresFull = flip(scoresFull);
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
        addresses: scaleAddresses,
        fragment: byteStoreOf(registers.alphas),
        name: 'α',
        site: 'α: stored',
      };
    yield signalStatistics('α');
    yield {
      op: 'registers',
      reads: [],
      site: 'softmax: exponentials',
      execute: issued('weights'),
    };
    yield* storeWeights(registers);
    yield awaitStatistics();
    statisticsEmpty = flip(statisticsEmpty);
    yield { op: 'registers', reads: [], site: 'softmax: row sums', execute: issued('rowSum') };
  }

  yield* setUp(context);
  if (stage >= plan.stages) {
    // With one stage the second group is idle, but it joins the warps that use tensor memory.
    yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
    return;
  }
  yield { op: 'setmaxnreg', action: 'inc', registers: 192 };
  yield* awaitTensorMemory(context, tensor);
  for (const tile of tiles) {
    const registers = createSoftmaxRegisters(configuration, format);
    const firstQuery = firstQueryOf(plan, tile, stage, place.cta) + firstRow;
    yield awaitStatistics();
    statisticsEmpty = flip(statisticsEmpty);
    for (let i = 0; i < tile.blocks; i++)
      yield* softmaxStep(registers, firstQuery, tile.lastBlock - i, i === 0);
    yield {
      op: 'st.shared',
      words: 1,
      addresses: scaleAddresses,
      fragment: byteStoreOf(registers.sums),
      name: 'row sums',
      site: 'row sums: stored',
    };
    yield {
      op: 'st.shared',
      words: 1,
      addresses: maximaAddresses,
      fragment: byteStoreOf(registers.maxima),
      name: 'row maxima',
      site: 'row maxima: stored',
    };
    yield signalStatistics('sums');
  }
  yield awaitStatistics();
  yield* leaveTensorMemory(context);
}
