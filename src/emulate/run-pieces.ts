import { fileURLToPath } from 'node:url';

/** The function of emulate-worker.ts that other threads run, their number, and the request each receives. */
export interface SharedWork {
  readonly threads: number;
  readonly work: 'runPiece' | 'runBackwardPiece' | 'matchBackwardPiece';
  readonly request: object;
}

/**
 * Runs pieces that do not depend on one another, handing each result to `settle` with how many are done.
 * @param run runs one on this thread
 * @param shared for other threads, while this one only waits: with pieces of its own to compute it would keep the others
 * waiting for theirs; null for this thread alone
 */
export async function runPieces<Piece>(
  pieces: number,
  run: (piece: number) => Piece,
  shared: SharedWork | null,
  settle: (result: Piece, done: number) => void,
): Promise<void> {
  let done = 0;
  if (shared === null) {
    for (let piece = 0; piece < pieces; piece++) settle(run(piece), ++done);
    return;
  }
  const workers = Math.min(shared.threads, pieces);
  const { Piscina } = await import('piscina');
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./emulate-worker.js', import.meta.url)),
    name: shared.work,
    workerData: shared.request,
    minThreads: workers,
    maxThreads: workers,
  });
  const runOne = async (piece: number): Promise<void> =>
    settle((await pool.run(piece)) as Piece, ++done);
  try {
    await Promise.all(Array.from({ length: pieces }, (_, piece) => runOne(piece)));
  } finally {
    await pool.destroy();
  }
}
