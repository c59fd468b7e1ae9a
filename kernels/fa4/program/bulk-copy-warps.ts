import {
  allLanes,
  clusterAddress,
  electedLane,
  type TensorMap,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { type ProgramContext, ringAddress, setUp } from './setup.js';
import type { BarrierPlan } from './barrier-plans.js';
import { scoreColumns, type TileLayout } from './plan.js';
import {
  advance,
  arriveOn,
  flip,
  leader,
  type Parity,
  type RingPlace,
  waitFor,
} from './signals.js';
import { firstQueryOf, type WorkTile } from './tiles.js';

/** Loads a tile box by box; the leader's barrier counts the bytes. */
function* loadBoxes(
  map: TensorMap,
  { boxes, boxColumns, boxBytes, rows }: TileLayout,
  destination: number,
  [column, row, head]: readonly [number, number, number],
  barrier: number,
): WarpProgram {
  const { name } = map;
  for (let box = 0; box < boxes; box++)
    yield {
      op: 'cp.async.bulk.tensor.shared.global',
      map,
      name,
      site: `${name}: loaded`,
      coordinates: [column + box * boxColumns, row, head],
      destination: destination + box * boxBytes * rows,
      barrier: clusterAddress(leader, barrier),
    };
}

/** The loads of tiles. */
class TileLoads {
  readonly #context: ProgramContext;
  #queries: Parity = 1;
  #freed: Parity = 0;
  #buffer: RingPlace = { index: 0, parity: 1 };

  constructor(context: ProgramContext) {
    this.#context = context;
  }

  /** Loads Q, K and V of a tile. */
  *load(tile: WorkTile): WarpProgram {
    const { plan, place } = this.#context;
    const { barriers, stages, overlapsQueries } = plan;
    yield* this.#loadBlock('K', tile, tile.lastBlock);
    for (let stage = 0; stage < stages; stage++) yield* this.#loadQueries(tile, stage);
    this.#queries = flip(this.#queries);
    yield* this.#loadBlock('V', tile, tile.lastBlock);
    for (let i = 1; i < tile.blocks; i++) {
      yield* this.#loadBlock('K', tile, tile.lastBlock - i);
      yield* this.#loadBlock('V', tile, tile.lastBlock - i);
    }
    if (overlapsQueries) {
      yield waitFor(barriers.queriesFree, 0, this.#freed, 'Q free of O: load waits');
      yield arriveOn(barriers.queriesTaken, 0, place.cta, electedLane, 'Q taken: load arrives');
      this.#freed = flip(this.#freed);
    }
  }

  /** Waits for the last arrivals on barriers of the CTA, before which it may not end. */
  *end(): WarpProgram {
    const { barriers, ring, stages } = this.#context.plan;
    for (let i = 1; i < ring.load; i++) this.#buffer = advance(this.#buffer, ring.load);
    const { index, parity } = this.#buffer;
    yield waitFor(barriers.ringEmpty, index, parity, 'K/V empty: load waits at its end');
    const site = 'Q empty: load waits at its end';
    yield waitFor(barriers.queriesEmpty, stages - 1, this.#queries, site);
  }

  *#loadBlock(what: 'K' | 'V', { kvHead }: WorkTile, block: number): WarpProgram {
    const { plan, place, maps } = this.#context;
    const { barriers, ring, isRingUneven } = plan;
    const isKeys = what === 'K';
    const layout = isKeys ? plan.k : plan.v;
    yield waitFor(
      barriers.ringEmpty,
      this.#buffer.index,
      this.#buffer.parity,
      'K/V empty: load waits',
    );
    yield* this.#expect(barriers.ringFull, this.#buffer.index, layout.bytes, 'K/V');
    // K at the beginning reaches into the middle this.#buffer of the round before.
    if (isKeys && isRingUneven && this.#buffer.index === 0)
      yield waitFor(
        barriers.ringEmpty,
        1,
        this.#buffer.parity,
        'K/V empty: load waits for the middle',
      );
    const first: readonly [number, number, number] = isKeys
      ? [0, block * scoreColumns + place.cta * layout.rows, kvHead]
      : [place.cta * layout.boxes * layout.boxColumns, block * scoreColumns, kvHead];
    const address = ringAddress(plan, this.#buffer, flip(this.#buffer.parity));
    const full = barriers.ringFull.offsets[this.#buffer.index];
    yield* loadBoxes(isKeys ? maps.k : maps.v, layout, address, first, full);
    this.#buffer = advance(this.#buffer, ring.load);
  }

  *#loadQueries(tile: WorkTile, stage: number): WarpProgram {
    const { plan, place, maps } = this.#context;
    const { barriers } = plan;
    yield waitFor(barriers.queriesEmpty, stage, this.#queries, 'Q empty: load waits');
    yield* this.#expect(barriers.queriesFull, stage, plan.q.bytes, 'Q');
    const row = firstQueryOf(plan, tile, stage, place.cta);
    const full = barriers.queriesFull.offsets[stage];
    const address = plan.addresses.q[stage];
    yield* loadBoxes(maps.q, plan.q, address, [0, row, tile.head], full);
  }

  *#expect(barrier: BarrierPlan, stage: number, bytes: number, name: string): WarpProgram {
    const { plan, place } = this.#context;
    if (place.cta === leader)
      yield {
        op: 'mbarrier.arrive.expect_tx',
        site: `${name} full: load expects bytes`,
        barrier: clusterAddress(leader, barrier.offsets[stage]),
        bytes: bytes * plan.ctas,
      };
  }
}

/**
 * The warp that loads Q, K and V. Per tile: the last K, Q of the stages, the last V, then K and V of the
 * earlier blocks in turn in one ring. Source: `load` in flash_fwd_sm100.py.
 */
export function* loadWarp(context: ProgramContext): WarpProgram {
  const loads = new TileLoads(context);
  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
  for (const tile of context.tiles) yield* loads.load(tile);
  yield* loads.end();
}

/** The warp that stores O. Source: `epilogue_s2g` in flash_fwd_sm100.py. */
export function* epilogueWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles, maps } = context;
  const { barriers, stages, addresses, o, overlapsQueries } = plan;
  let stagedFull: Parity = 0;
  let queriesTaken: Parity = 1;
  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
  for (const tile of tiles) {
    for (let stage = 0; stage < stages; stage++) {
      yield waitFor(barriers.stagedFull, stage, stagedFull, 'O staged: epilogue waits');
      const row = firstQueryOf(plan, tile, stage, place.cta);
      for (let box = 0; box < o.boxes; box++)
        yield {
          op: 'cp.async.bulk.tensor.global.shared',
          map: maps.o,
          name: 'O',
          coordinates: [box * o.boxColumns, row, tile.head],
          source: addresses.o[stage] + box * o.boxBytes * o.rows,
          site: 'O: bulk store',
        };
      yield { op: 'cp.async.bulk.commit_group', site: 'O: group' };
    }
    for (let stage = 0; stage < stages; stage++) {
      const pending = stages - 1 - stage;
      yield { op: 'cp.async.bulk.wait_group.read', pending, site: 'O: bulk stores awaited' };
      yield arriveOn(
        barriers.stagedEmpty,
        stage,
        place.cta,
        allLanes,
        'O stored: epilogue arrives',
      );
    }
    stagedFull = flip(stagedFull);
    if (!overlapsQueries) continue;
    yield waitFor(barriers.queriesTaken, 0, queriesTaken, 'Q taken: epilogue waits');
    yield arriveOn(
      barriers.queriesFree,
      0,
      place.cta,
      electedLane,
      'Q free of O: epilogue arrives',
    );
    queriesTaken = flip(queriesTaken);
  }
}
