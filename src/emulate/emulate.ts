import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { findKernelModel, type KernelPiece, type PreparedKernel } from '../../kernels/index.js';
import { allocateStorage, formats, patternsOf } from '../formats/index.js';
import type { Problem, Tensor } from '../problem.js';
import { shareRequest, type SharedRequest } from './shared-request.js';

export interface EmulationOptions {
  /** Values as text, by key; see the model's settings. */
  readonly settings?: ReadonlyMap<string, string>;
  /** Default 1: this thread. The result does not depend on it. */
  readonly threads?: number;
  /** Called with how many pieces are done and how many there are. */
  readonly progress?: (done: number, total: number) => void;
}

/** What a kernel model made of a problem. */
export interface Emulation {
  readonly model: string;
  /** [batch, heads, queries, vDim], of the rank of the problem's Q. */
  readonly out: Tensor;
  /** [batch, heads, queries], natural logarithm, fp32. */
  readonly lse: Tensor;
  /** [batch, heads, queries]: how often each row was rescaled; null for models that never do. */
  readonly rescales: Tensor | null;
  readonly counters: Readonly<Record<string, number>>;
  readonly settings: PreparedKernel['settings'];
  readonly evidence: readonly string[];
}

/**
 * Runs all pieces on worker threads, handing each result to `settle`. This thread only waits: with
 * pieces of its own to compute it would keep the others waiting for theirs.
 */
async function runOnThreads(
  request: SharedRequest,
  pieces: number,
  threads: number,
  settle: (piece: KernelPiece) => void,
): Promise<void> {
  const workers = Math.min(threads, pieces);
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./emulate-worker.js', import.meta.url)),
    name: 'runPiece',
    workerData: request,
    minThreads: workers,
    maxThreads: workers,
  });
  const run = async (piece: number): Promise<void> =>
    settle((await pool.run(piece)) as KernelPiece);
  try {
    await Promise.all(Array.from({ length: pieces }, (_, piece) => run(piece)));
  } finally {
    await pool.destroy();
  }
}

/**
 * Runs a kernel model on a problem, its pieces shared among threads.
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulate(
  problem: Problem,
  model: string,
  options: EmulationOptions = {},
): Promise<Emulation> {
  const { settings = new Map<string, string>(), threads = 1, progress } = options;
  const prepared = findKernelModel(model).prepare(problem, settings);
  const { shape, outFormat, pieces, evidence } = prepared;
  const rows = shape.batch * shape.heads * shape.queries;
  const format = formats[outFormat];
  const out = allocateStorage(format, rows * shape.vDim);
  const outPatterns = patternsOf(out, format);
  const wordsPerElement = outPatterns.length / Math.max(out.length, 1);
  const lse = new Float32Array(rows);
  const rescales = new Float32Array(rows);
  const counters: Record<string, number> = {};
  let hasRescales = false;
  let done = 0;
  const settle = (piece: KernelPiece): void => {
    outPatterns.set(piece.out, piece.firstRow * shape.vDim * wordsPerElement);
    lse.set(piece.lse, piece.firstRow);
    if (piece.rescales !== null) {
      hasRescales = true;
      rescales.set(piece.rescales, piece.firstRow);
    }
    for (const [name, count] of Object.entries(piece.counters))
      counters[name] = (counters[name] ?? 0) + count;
    progress?.(++done, pieces);
  };
  if (threads === 1 || pieces < 2)
    for (let piece = 0; piece < pieces; piece++) settle(prepared.run(piece));
  else await runOnThreads(shareRequest(problem, model, settings), pieces, threads, settle);
  const rowShape = problem.q.shape.slice(0, -1);
  return {
    model,
    out: { format: outFormat, shape: [...rowShape, shape.vDim], data: out },
    lse: { format: 'fp32', shape: rowShape, data: lse },
    rescales: hasRescales ? { format: 'fp32', shape: rowShape, data: rescales } : null,
    counters,
    settings: prepared.settings,
    evidence,
  };
}
