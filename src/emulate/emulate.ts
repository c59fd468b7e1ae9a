import { setImmediate } from 'node:timers/promises';
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
 * Runs all pieces, on this thread and on `threads` − 1 others, handing each result to `settle`. This
 * thread begins at once, while the others start.
 */
async function runOnThreads(
  prepared: PreparedKernel,
  request: SharedRequest,
  threads: number,
  settle: (piece: KernelPiece) => void,
): Promise<void> {
  const { pieces } = prepared;
  const others = Math.min(threads, pieces) - 1;
  const pool = new Piscina({
    filename: fileURLToPath(new URL('./emulate-worker.js', import.meta.url)),
    name: 'runPiece',
    workerData: request,
    minThreads: others,
    maxThreads: others,
    concurrentTasksPerWorker: 2,
  });
  let next = 0;
  const here = async (): Promise<void> => {
    while (next < pieces) {
      settle(prepared.run(next++));
      await setImmediate();
    }
  };
  const there = async (): Promise<void> => {
    while (next < pieces) settle((await pool.run(next++)) as KernelPiece);
  };
  // A second piece for each other thread, so that none waits while this one computes; not at the end,
  // where it would wait behind another.
  const ahead = async (): Promise<void> => {
    while (pieces - next > 2 * threads) settle((await pool.run(next++)) as KernelPiece);
  };
  try {
    await Promise.all([
      ...Array.from({ length: others }, there),
      ...Array.from({ length: others }, ahead),
      here(),
    ]);
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
  else await runOnThreads(prepared, shareRequest(problem, model, settings), threads, settle);
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
