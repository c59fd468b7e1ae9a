import type { AttributedKernel } from '../../kernels/index.js';

/**
 * All pieces of a kernel if they hold at most `pairs` pairs of a query and a key, masked ones included;
 * else as many as hold that, one at least, spread evenly over those with the most rows.
 */
export function samplePieces({ pieces, rowsOf, shape }: AttributedKernel, pairs: number): number[] {
  const rows = Array.from({ length: pieces }, (_, piece) => rowsOf(piece).rows);
  const fitting = pairs / Math.max(shape.keys, 1);
  if (rows.reduce((sum, count) => sum + count, 0) <= fitting) return [...rows.keys()];
  const most = rows.reduce((max, count) => Math.max(max, count), 0);
  const whole = [...rows.keys()].filter((piece) => rows[piece] === most);
  const count = Math.min(whole.length, Math.max(Math.floor(fitting / most), 1));
  // The middle of each of `count` equal parts.
  return Array.from(
    { length: count },
    (_, i) => whole[Math.floor(((i + 0.5) * whole.length) / count)],
  );
}
