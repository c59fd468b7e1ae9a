import type { KeptWeights, ScoreLaw } from '../../src/problem/index.js';
import type { HeadOperands } from './head-operands.js';
import { operandRow, tileRows } from './operand.js';
import type { Row } from './row.js';
import type { Rules } from './rules.js';

/** Calls `take` for each key, ascending, with its place in the tile that `fill` has written last. */
function walkTiles(
  keys: Int32Array,
  fill: (firstKey: number) => void,
  take: (j: number, place: number) => void,
): void {
  let firstKey = -1;
  keys.forEach((key, j) => {
    const first = key - (key % tileRows);
    if (first !== firstKey) fill(first);
    firstKey = first;
    take(j, key - first);
  });
}

/** The addends of the scores of some keys of a row, and their rounding errors. */
function addendsOf({ addend, hasRest }: ScoreLaw, head: number, row: number, keys: Int32Array) {
  if (addend === null) return { addends: null, addendRests: null };
  const addends = new Float64Array(keys.length);
  const addendRests = new Float64Array(keys.length);
  const tile = new Float64Array(tileRows);
  const rests = new Float64Array(tileRows);
  walkTiles(
    keys,
    (firstKey) => addend(head, row, firstKey, tile, rests),
    (j, place) => {
      addends[j] = tile[place];
      addendRests[j] = rests[place];
    },
  );
  return { addends, addendRests: hasRest === true ? addendRests : null };
}

/** Flags of the keys of a row that dropout keeps. */
function keptOf(kept: KeptWeights | null, head: number, row: number, keys: Int32Array) {
  if (kept === null) return null;
  const isKept = new Uint8Array(keys.length);
  const tile = new Uint8Array(tileRows);
  walkTiles(
    keys,
    (firstKey) => kept.fill(head, row, firstKey, tile),
    (j, place) => (isKept[j] = tile[place]),
  );
  return isKept;
}

/**
 * A row with some of the keys that it sees, for the slower levels.
 * @param infinite per key, as in `Row`
 */
export function visibleRow(
  { head, query, keys, values }: HeadOperands,
  row: number,
  { law, kept, sinkOf }: Rules,
  visible: Int32Array,
  infinite: Int8Array,
): Row {
  return {
    query: operandRow(query, row).slice(),
    queryNorm: query.norm[row],
    keys,
    values,
    visible,
    infinite,
    ...addendsOf(law, head, row, visible),
    kept: keptOf(kept, head, row, visible),
    sink: sinkOf(head),
    share: kept?.share ?? 1,
  };
}
