import { allLanes, electedLane, type WarpProgram } from '../../../src/machine/index.js';
import type { ProgramContext } from './context.js';
import { setUp } from './setup.js';
import { arriveOn, flip, waitFor, type Parity } from './signals.js';
import { firstQueryOf } from './tiles.js';

/** The warp that stores O. Source: `epilogue_s2g` in flash_fwd_sm100.py. */
export function* epilogueWarp(context: ProgramContext): WarpProgram {
  const { plan, place, tiles, maps } = context;
  const { barriers, stages, addresses, o, overlapsQueries } = plan;
  let stagedFull: Parity = 0;
  let queriesTaken: Parity = 1;
  yield* setUp(context);
  yield { op: 'setmaxnreg', registers: 48 };
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
