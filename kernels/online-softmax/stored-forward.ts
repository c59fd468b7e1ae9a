import { allocateStorage, formats, patternsOf } from '../../src/formats/index.js';
import type { ProblemShape } from '../../src/problem/index.js';
import type { ForwardOutputs } from '../backward/model.js';
import type { ForwardTileResult, ForwardTiles } from './query-tiles.js';
import type { OutFormat } from './units.js';

/** Runs all tiles of a forward; the outputs stored for a backward, O in its format and the LSE. */
export function storedForward(
  { batch, heads, queries, vDim }: ProblemShape,
  outFormat: OutFormat,
  { tiles, rowsOf, runTile }: Pick<ForwardTiles<ForwardTileResult>, 'tiles' | 'rowsOf' | 'runTile'>,
): ForwardOutputs {
  const format = formats[outFormat];
  const data = allocateStorage(format, batch * heads * queries * vDim);
  const patterns = patternsOf(data, format);
  const lse = new Float32Array(batch * heads * queries);
  for (let tile = 0; tile < tiles; tile++) {
    const { first } = rowsOf(tile);
    const result = runTile(tile);
    patterns.set(result.out, first * vDim);
    lse.set(result.lse, first);
  }
  return {
    out: { format: format.name, shape: [batch, heads, queries, vDim], data },
    lse: { format: 'fp32', shape: [batch, heads, queries], data: lse },
  };
}
