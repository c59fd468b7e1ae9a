import type { PreparedKernel } from '../kernel-model.js';
import type { ForwardTileResult, ForwardTiles } from './query-tiles.js';

/** The pieces of a forward: its tiles. */
export function preparedForward(
  { tiles, rowsOf, runTile }: Pick<ForwardTiles<ForwardTileResult>, 'tiles' | 'rowsOf' | 'runTile'>,
  { shape, outFormat, settings, evidence }: Omit<PreparedKernel, 'pieces' | 'run'>,
): PreparedKernel {
  return {
    shape,
    outFormat,
    pieces: tiles,
    settings,
    evidence,
    run: (piece) => {
      const { first, rows } = rowsOf(piece);
      const { out, lse, rescales, counters } = runTile(piece);
      return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
    },
  };
}
