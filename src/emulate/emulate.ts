import {
  assembleKernelPieces,
  findKernelModel,
  type KernelModel,
  kernelModels,
  type KernelResults,
  type PreparedKernel,
} from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { runPieces } from './run-pieces.js';
import { shareProblem, type SharedProblem, unshareProblem } from './share-problem.js';

/** Settings of the model, and of the run. */
export interface EmulationOptions {
  /** Values as text, by key; see the model's settings. */
  readonly settings?: ReadonlyMap<string, string>;
  /**
   * Default 1: this thread. The result does not depend on it. Other threads know the library's models;
   * any other model runs on this one.
   */
  readonly threads?: number;
  /** Called with the numbers of pieces done and of all pieces. */
  readonly progress?: (done: number, total: number) => void;
}

/** Results of a kernel model on a problem. */
export interface Emulation extends KernelResults {
  readonly model: string;
  readonly settings: PreparedKernel['settings'];
  readonly evidence: readonly string[];
}

/** The request that every thread of an emulation receives. */
export interface SharedRequest {
  readonly model: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly problem: SharedProblem;
}

/** The model made ready, on the shared tensors themselves. */
export function prepareShared({ model, settings, problem }: SharedRequest): PreparedKernel {
  return findKernelModel(model).prepare(unshareProblem(problem), settings);
}

/**
 * Runs a kernel model on a problem, its pieces shared among threads.
 * @param model the model, or the name of one of the library's
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulate(
  problem: Problem,
  model: string | KernelModel,
  options: EmulationOptions = {},
): Promise<Emulation> {
  const { settings = new Map<string, string>(), threads = 1, progress } = options;
  const found = findKernelModel(model);
  const { name } = found;
  const prepared = found.prepare(problem, settings);
  const { pieces, evidence } = prepared;
  const assembly = assembleKernelPieces(problem, prepared);
  const isShared = threads > 1 && pieces > 1 && kernelModels.includes(found);
  await runPieces(
    pieces,
    prepared.run,
    isShared
      ? {
          threads,
          work: 'runPiece',
          request: { model: name, settings, problem: shareProblem(problem) },
        }
      : null,
    (piece, done) => {
      assembly.add(piece);
      progress?.(done, pieces);
    },
  );
  return { model: name, ...assembly.results(), settings: prepared.settings, evidence };
}
