import {
  assembleBackwardPieces,
  backwardOf,
  checkBackwardInputs,
  findKernelModel,
  forwardSettings,
  kernelModels,
  type BackwardGradients,
  type ForwardOutputs,
  type KernelModel,
  type PreparedBackward,
} from '../../kernels/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import { emulate, type Emulation, type EmulationOptions, type SharedRequest } from './emulate.js';
import { runPieces } from './run-pieces.js';
import { shareProblem, shareTensor, unshareProblem, unshareTensor } from './share-problem.js';
import type { SharedTensor } from './share-problem.js';

/** Inputs of a backward pass beside the problem. */
export interface EmulatedInputs {
  /** The gradient of the output: [batch, heads, queries, vDim]. */
  readonly dout: Tensor;
  /** Outputs that the forward pass stored; null, or left out: the model's own, whose forward is run first. */
  readonly forward?: ForwardOutputs | null;
}

/** Results of a kernel model's backward pass on a problem. */
export interface BackwardEmulation extends BackwardGradients {
  readonly model: string;
  readonly settings: PreparedBackward['settings'];
  readonly evidence: readonly string[];
  /** The forward outputs that the backward pass read. */
  readonly forward: ForwardOutputs;
  /** The model's own forward pass; null where another's outputs were given. */
  readonly ownForward: Emulation | null;
}

/** The request that every thread of an emulated backward pass receives. */
export interface SharedBackwardRequest extends SharedRequest {
  readonly tensors: Readonly<Record<'dout' | 'out' | 'lse', SharedTensor>>;
}

/** The backward pass made ready, on the shared tensors themselves. */
export function prepareSharedBackward({
  model,
  settings,
  problem,
  tensors: { dout, out, lse },
}: SharedBackwardRequest): PreparedBackward {
  const forward = { out: unshareTensor(out), lse: unshareTensor(lse) };
  const inputs = { dout: unshareTensor(dout), forward };
  return backwardOf(findKernelModel(model)).prepare(unshareProblem(problem), inputs, settings);
}

/** The forward's share of the work of both passes: two of seven products. */
const shareOfForward = 2 / 7;

/** A backward pass made ready, with the data that all its threads need. */
export interface ReadyBackward {
  readonly model: KernelModel;
  readonly prepared: PreparedBackward;
  readonly forward: ForwardOutputs;
  /** The model's own forward pass; null where another's outputs were given. */
  readonly ownForward: Emulation | null;
  /** The request for other threads; null where this one does all. */
  readonly request: (() => SharedBackwardRequest) | null;
  /** Reports how many pieces are done. */
  readonly tell: (done: number) => void;
}

/**
 * Makes a backward pass ready; runs the model's forward first where no stored outputs are given.
 * @throws RequestError as `emulateBackward`
 */
export async function readyBackward(
  problem: Problem,
  model: string | KernelModel,
  { dout, forward: given = null }: EmulatedInputs,
  { settings = new Map<string, string>(), threads = 1, progress }: EmulationOptions,
): Promise<ReadyBackward> {
  const found = findKernelModel(model);
  const backward = backwardOf(found);
  const start = given === null ? shareOfForward : 0;
  const tell = (share: number) => progress?.(Math.round(1000 * share), 1000);
  // Invalid inputs are reported before the forward is run.
  checkBackwardInputs(problem, dout, given);
  backward.arithmetic(problem, settings);
  const own = forwardSettings(backward, settings);
  const ownForward =
    given === null
      ? await emulate(problem, found, {
          settings: own,
          threads,
          progress: (done, total) => tell((start * done) / total),
        })
      : null;
  const { out, lse } = given ?? ownForward!;
  const prepared = backward.prepare(problem, { dout, forward: { out, lse } }, settings);
  const isShared = threads > 1 && prepared.pieces > 1 && kernelModels.includes(found);
  const request = (): SharedBackwardRequest => ({
    model: found.name,
    settings,
    problem: shareProblem(problem),
    tensors: { dout: shareTensor(dout), out: shareTensor(out), lse: shareTensor(lse) },
  });
  return {
    model: found,
    prepared,
    forward: { out, lse },
    ownForward,
    request: isShared ? request : null,
    tell: (done) => tell(start + ((1 - start) * done) / prepared.pieces),
  };
}

/**
 * Runs a kernel model's backward pass on a problem, its pieces shared among threads; runs its forward first where no stored
 * outputs are given.
 * @param model the model, or the name of one of the library's
 * @param options its settings are those of both passes, its progress in thousandths of the whole
 * @throws RequestError for an unknown model or setting, a model of the forward pass alone, and a problem or tensors that the
 *   model does not take
 */
export async function emulateBackward(
  problem: Problem,
  model: string | KernelModel,
  inputs: EmulatedInputs,
  options: EmulationOptions = {},
): Promise<BackwardEmulation> {
  const ready = await readyBackward(problem, model, inputs, options);
  const { prepared, request, forward, ownForward } = ready;
  const { settings, evidence, pieces } = prepared;
  const assembly = assembleBackwardPieces(problem, prepared);
  const { threads = 1 } = options;
  await runPieces(
    pieces,
    prepared.run,
    request && { threads, work: 'runBackwardPiece', request: request() },
    (piece, done) => {
      assembly.add(piece);
      ready.tell(done);
    },
  );
  return {
    model: ready.model.name,
    ...assembly.results(),
    settings,
    evidence,
    forward,
    ownForward,
  };
}
