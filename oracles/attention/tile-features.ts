import { hasKey, type KeptWeights, type ScoreLaw } from '../../src/problem/index.js';
import type { QueryBlock } from './head-operands.js';
import { tileRows } from './operand.js';
import type { TileEngine } from './tile-engine.js';

/**
 * Writes to the engine the addends of the scores of a block against a tile of keys.
 * @param error per row: raised to the largest rounding error of these numbers
 */
export function loadAddends(
  { addends, low, high }: TileEngine,
  { addend, hasRest }: ScoreLaw,
  { operands: { head }, firstRow, ranges }: QueryBlock,
  firstKey: number,
  error: Float64Array,
): void {
  if (addend === null) return;
  const rests = hasRest === true ? new Float64Array(tileRows) : undefined;
  for (let i = 0; i < ranges.length; i++) {
    if (low.view[i] >= high.view[i]) continue;
    const ofRow = addends.view.subarray(i * tileRows, (i + 1) * tileRows);
    addend(head, firstRow + i, firstKey, ofRow, rests);
    if (rests === undefined) continue;
    for (let j = 0; j < tileRows; j++) error[i] = Math.max(error[i], Math.abs(rests[j]));
  }
}

/**
 * Takes away the weights that dropout does not keep, from weights that a tile of the engine has, into `target`
 * (which may be these).
 * @param anyKept per row: set to 1 where a key of the tile that the row sees is kept
 */
export function dropWeights(
  { scores, low, high }: TileEngine,
  kept: KeptWeights,
  { operands: { head }, firstRow, ranges }: QueryBlock,
  firstKey: number,
  { target, anyKept }: { readonly target: Float64Array; readonly anyKept: Uint8Array },
): void {
  const isKept = new Uint8Array(tileRows);
  for (let i = 0; i < ranges.length; i++) {
    const start = i * tileRows;
    if (low.view[i] >= high.view[i]) {
      target.fill(0, start, start + tileRows);
      continue;
    }
    kept.fill(head, firstRow + i, firstKey, isKept);
    for (let j = 0; j < tileRows; j++)
      target[start + j] = isKept[j] === 0 ? 0 : scores.view[start + j];
    if (anyKept[i] === 0 && isKept.some((x, j) => x !== 0 && hasKey(ranges[i], firstKey + j)))
      anyKept[i] = 1;
  }
}
