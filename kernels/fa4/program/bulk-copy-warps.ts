import {
  allLanes,
  clusterAddress,
  electedLane,
  type TensorMap,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { type ProgramContext, ringAddress, setUp } from './setup.js';
import { scoreColumns, type BarrierPlan, type TileLayout } from './plan.js';
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

/**
 * The warp that loads Q, K and V. Per tile: the last K, Q of the stages, the last V, then K and V of the
 * earlier blocks in turn in one ring. Source: `load` in flash_fwd_sm100.py.
 */
export function* loadWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles, maps } = context;
  const { barriers, ctas, ring, isRingUneven, stages, overlapsQueries } = plan;
  const isLeader = place.cta === leader;
  let queries: Parity = 1;
  let freed: Parity = 0;
  let buffer: RingPlace = { index: 0, parity: 1 };

  function* expect(barrier: BarrierPlan, stage: number, bytes: number, name: string): WarpProgram {
    if (isLeader)
      yield {
        op: 'mbarrier.arrive.expect_tx',
        site: `${name} full: load expects bytes`,
        barrier: clusterAddress(leader, barrier.offsets[stage]),
        bytes: bytes * ctas,
      };
  }

  function* loadBlock(what: 'K' | 'V', { kvHead }: WorkTile, block: number): WarpProgram {
    const isKeys = what === 'K';
    const layout = isKeys ? plan.k : plan.v;
    yield waitFor(barriers.ringEmpty, buffer.index, buffer.parity, 'K/V empty: load waits');
    yield* expect(barriers.ringFull, buffer.index, layout.bytes, 'K/V');
    // K at the beginning reaches into the middle buffer of the round before.
    if (isKeys && isRingUneven && buffer.index === 0)
      yield waitFor(barriers.ringEmpty, 1, buffer.parity, 'K/V empty: load waits for the middle');
    const first: readonly [number, number, number] = isKeys
      ? [0, block * scoreColumns + place.cta * layout.rows, kvHead]
      : [place.cta * layout.boxes * layout.boxColumns, block * scoreColumns, kvHead];
    const address = ringAddress(plan, buffer, flip(buffer.parity));
    const full = barriers.ringFull.offsets[buffer.index];
    yield* loadBoxes(isKeys ? maps.k : maps.v, layout, address, first, full);
    buffer = advance(buffer, ring.load);
  }

  function* loadQueries(tile: WorkTile, stage: number): WarpProgram {
    yield waitFor(barriers.queriesEmpty, stage, queries, 'Q empty: load waits');
    yield* expect(barriers.queriesFull, stage, plan.q.bytes, 'Q');
    const row = firstQueryOf(plan, tile, stage, place.cta);
    const full = barriers.queriesFull.offsets[stage];
    const address = plan.addresses.q[stage];
    yield* loadBoxes(maps.q, plan.q, address, [0, row, tile.head], full);
  }

  yield* setUp(context);
  yield { op: 'setmaxnreg', action: 'dec', registers: 48 };
  for (const tile of tiles) {
    yield* loadBlock('K', tile, tile.lastBlock);
    for (let stage = 0; stage < stages; stage++) yield* loadQueries(tile, stage);
    queries = flip(queries);
    yield* loadBlock('V', tile, tile.lastBlock);
    for (let i = 1; i < tile.blocks; i++) {
      yield* loadBlock('K', tile, tile.lastBlock - i);
      yield* loadBlock('V', tile, tile.lastBlock - i);
    }
    if (overlapsQueries) {
      yield waitFor(barriers.queriesFree, 0, freed, 'Q free of O: load waits');
      yield arriveOn(barriers.queriesTaken, 0, place.cta, electedLane, 'Q taken: load arrives');
      freed = flip(freed);
    }
  }
  // No CTA may end before the last arrival on its barriers.
  for (let i = 1; i < ring.load; i++) buffer = advance(buffer, ring.load);
  yield waitFor(
    barriers.ringEmpty,
    buffer.index,
    buffer.parity,
    'K/V empty: load waits at its end',
  );
  yield waitFor(barriers.queriesEmpty, stages - 1, queries, 'Q empty: load waits at its end');
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
