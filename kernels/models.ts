import { allocateStorage, formats, patternsOf } from '../src/formats/index.js';
import type { Problem, Tensor } from '../src/problem/index.js';
import { RequestError } from '../src/request-error.js';
import { nearClause } from '../src/words/index.js';
import type { BackwardInputs, BackwardModel, PreparedBackward } from './backward/model.js';
import { assembleBackwardPieces, type BackwardGradients } from './backward/pieces.js';
import { cutlassFmhaModel } from './cutlass-fmha.js';
import { fa1Model } from './fa1.js';
import { fa2Model } from './fa2/index.js';
import { fa3Model } from './fa3/index.js';
import { fa4Model } from './fa4/index.js';
import { flashInferModel } from './flashinfer/index.js';
import type { KernelModel, KernelPiece, KernelSettings, PreparedKernel } from './kernel-model.js';
import { naiveFloat32Model, naiveInputModel } from './naive/index.js';
import { sageAttentionModel } from './sageattention/index.js';

/** The kernel models. */
export const kernelModels: readonly KernelModel[] = [
  fa4Model,
  fa3Model,
  fa2Model,
  fa1Model,
  flashInferModel,
  cutlassFmhaModel,
  naiveFloat32Model,
  naiveInputModel,
  sageAttentionModel,
];

/** The model used where none is named: FlashAttention-4's forward. */
export const defaultKernelModel: KernelModel = fa4Model;

/**
 * The kernel model of a name among some models, or the model itself.
 * @throws RequestError for an unknown name
 */
export function findModelAmong(
  models: readonly KernelModel[],
  model: string | KernelModel,
): KernelModel {
  if (typeof model !== 'string') return model;
  const found = models.find((known) => known.name === model);
  const names = models.map(({ name }) => name);
  if (found === undefined)
    throw new RequestError(
      `no kernel model ${JSON.stringify(model)}${nearClause(model, names)}; there are ${names.join(', ')}`,
    );
  return found;
}

/** The library's kernel model of a name, or the model itself. @throws RequestError for an unknown name */
export function findKernelModel(model: string | KernelModel): KernelModel {
  return findModelAmong(kernelModels, model);
}

/** The results of a whole problem. */
export interface KernelResults {
  /** [batch, heads, queries, vDim], of the rank of the problem's Q. */
  readonly out: Tensor;
  /** [batch, heads, queries], natural logarithm, fp32. */
  readonly lse: Tensor;
  /** [batch, heads, queries]: number of rescales of each row; null for models that never rescale. */
  readonly rescales: Tensor | null;
  readonly counters: Readonly<Record<string, number>>;
}

/** Assembles pieces, in whatever order they come. */
export interface KernelAssembly {
  readonly add: (piece: KernelPiece) => void;
  /** The results from the pieces added so far. */
  readonly results: () => KernelResults;
}

/** An assembly of the pieces that a model computes for a problem. */
export function assembleKernelPieces(
  problem: Problem,
  { shape, outFormat }: PreparedKernel,
): KernelAssembly {
  const rows = shape.batch * shape.heads * shape.queries;
  const format = formats[outFormat];
  const out = allocateStorage(format, rows * shape.vDim);
  const outPatterns = patternsOf(out, format);
  const wordsPerElement = outPatterns.length / Math.max(out.length, 1);
  const lse = new Float32Array(rows);
  const rescales = new Float32Array(rows);
  const counters: Record<string, number> = {};
  let hasRescales = false;
  const add = (piece: KernelPiece): void => {
    outPatterns.set(piece.out, piece.firstRow * shape.vDim * wordsPerElement);
    lse.set(piece.lse, piece.firstRow);
    if (piece.rescales !== null) {
      hasRescales = true;
      rescales.set(piece.rescales, piece.firstRow);
    }
    for (const [name, count] of Object.entries(piece.counters))
      counters[name] = (counters[name] ?? 0) + count;
  };
  const rowShape = problem.q.shape.slice(0, -1);
  const results = (): KernelResults => ({
    out: { format: outFormat, shape: [...rowShape, shape.vDim], data: out },
    lse: { format: 'fp32', shape: rowShape, data: lse },
    rescales: hasRescales ? { format: 'fp32', shape: rowShape, data: rescales } : null,
    counters,
  });
  return { add, results };
}

/**
 * Runs a kernel model on a problem, on this thread.
 * @param model the model, or its name
 * @param settings as of `KernelModel.prepare`
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export function runKernelModel(
  model: string | KernelModel,
  problem: Problem,
  settings: ReadonlyMap<string, string> = new Map(),
): KernelResults {
  const prepared = findKernelModel(model).prepare(problem, settings);
  const assembly = assembleKernelPieces(problem, prepared);
  for (let piece = 0; piece < prepared.pieces; piece++) assembly.add(prepared.run(piece));
  return assembly.results();
}

/** Results of a model's forward and backward passes. */
export interface BackwardResults extends BackwardGradients {
  readonly forward: Pick<KernelResults, 'out' | 'lse'>;
  readonly prepared: PreparedBackward;
}

/** A model's backward pass. @throws RequestError for a model of the forward pass alone */
export function backwardOf({ name, backward }: KernelModel): BackwardModel {
  if (backward === null)
    throw new RequestError(`${name} has no backward pass; choose a model that has one`);
  return backward;
}

/** The settings among `chosen` that belong to the forward pass. */
export function forwardSettings(
  { settings }: BackwardModel,
  chosen: KernelSettings,
): KernelSettings {
  const own = new Set(settings.map(({ key }) => key));
  return new Map([...chosen].filter(([key]) => !own.has(key)));
}

/**
 * Runs a model's backward pass on a problem, on this thread.
 * @param model the model, or its name
 * @param inputs dO, and the forward pass's stored outputs; without these the model's own forward is run
 * @param settings those of the forward pass and those of the backward
 * @throws RequestError for an unknown model or setting, for a model of the forward pass alone, and for a problem or tensors
 *   that the model does not take
 */
export function runBackward(
  model: string | KernelModel,
  problem: Problem,
  inputs: { readonly dout: Tensor; readonly forward?: BackwardInputs['forward'] },
  settings: KernelSettings = new Map(),
): BackwardResults {
  const found = findKernelModel(model);
  const backward = backwardOf(found);
  const { dout, forward: given = null } = inputs;
  const forward = given ?? runKernelModel(found, problem, forwardSettings(backward, settings));
  const { out, lse } = forward;
  const prepared = backward.prepare(problem, { dout, forward: { out, lse } }, settings);
  const assembly = assembleBackwardPieces(problem, prepared);
  for (let piece = 0; piece < prepared.pieces; piece++) assembly.add(prepared.run(piece));
  return { ...assembly.results(), forward: { out, lse }, prepared };
}
