import {
  assembleKernelPieces,
  findModelAmong,
  kernelModels,
  type KernelModel,
} from '../../kernels/index.js';
import type { BackwardEmulation, Emulation } from '../emulate/index.js';
import type { Problem } from '../problem/index.js';
import type { TensorSource } from '../report/json/index.js';
import { documentHead, secondsSince, type DocumentHead } from './audit/index.js';

/** A problem for a kernel model to compute. */
export interface EmulateRequest {
  readonly problem: Problem;
  /** The model's name. */
  readonly model: string;
  /** The model's settings as text, by key. */
  readonly settings: ReadonlyMap<string, string>;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** Runs a model on a problem, reporting the number of pieces done and of all pieces. */
export type EmulationRunner = (
  problem: Problem,
  model: KernelModel,
  settings: ReadonlyMap<string, string>,
  progress: (done: number, total: number) => void,
) => Promise<Emulation>;

/** An emulation, and its duration. */
export interface EmulateResult {
  readonly emulation: Emulation;
  readonly seconds: number;
}

/** An emulation of both passes, and its duration. */
export interface BackwardResult {
  readonly emulation: BackwardEmulation;
  readonly seconds: number;
}

/** Facts about a pass that was emulated. */
export type EmulatedPass = Pick<Emulation, 'settings' | 'counters' | 'evidence'>;

/** Facts about an emulation in its document, with or without the machine. */
interface Emulated {
  readonly emulation: {
    readonly model: string;
    readonly settings: Readonly<Record<string, unknown>>;
  };
  readonly seconds: number;
}

/** The bytes of a file: its path, and their SHA-256 in lower-case hexadecimal. */
export interface HashedFile {
  readonly path: string;
  readonly sha256: string;
}

/** The head of the JSON document of an emulation, with or without the machine. */
export interface EmulateDocument extends DocumentHead<'emulate'> {
  readonly problem: HashedFile;
  /** The kernel model's name. */
  readonly kernel: string;
  /** The kernel's settings by key. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** One piece after the other, as `emulate` of src/emulate does it with one thread. */
const onThisThread: EmulationRunner = async (problem, model, settings, progress) => {
  const prepared = model.prepare(problem, settings);
  const { pieces, evidence } = prepared;
  const assembly = assembleKernelPieces(problem, prepared);
  for (let piece = 0; piece < pieces; piece++) {
    assembly.add(prepared.run(piece));
    progress(piece + 1, pieces);
  }
  return { model: model.name, ...assembly.results(), settings: prepared.settings, evidence };
};

/**
 * Runs a kernel model on a problem.
 * @param run where it runs; default: on this thread
 * @param progress called with the share of the whole, from 0 to 1
 * @throws RequestError for an unknown model or setting and for a problem that the model does not take
 */
export async function emulateKernel(
  { problem, model, settings, models = kernelModels, start = performance.now() }: EmulateRequest,
  run: EmulationRunner = onThisThread,
  progress: (share: number) => void = () => undefined,
): Promise<EmulateResult> {
  const found = findModelAmong(models, model);
  const emulation = await run(problem, found, settings, (done, total) => progress(done / total));
  return { emulation, seconds: secondsSince(start) };
}

/** The common part of the documents of all emulations. */
export function emulateDocument(
  version: string,
  problem: HashedFile,
  { emulation: { model, settings }, seconds }: Emulated,
): EmulateDocument {
  return { ...documentHead('emulate', version, seconds), problem, kernel: model, settings };
}

/**
 * The JSON document of an emulation.
 * @param saved the file that the outputs were written to; null for none
 */
export function emulationDocument(
  version: string,
  problem: HashedFile,
  result: EmulateResult,
  saved: string | null,
): object {
  const { counters, evidence } = result.emulation;
  return { ...emulateDocument(version, problem, result), counters, evidence, saved };
}

/** The files of an emulated backward pass. */
export interface BackwardFiles {
  /** The file that the tensors were written to; null for none. */
  readonly saved: string | null;
  /** The source of dO. */
  readonly dout: TensorSource;
}

/** The JSON document of an emulation of both passes: that of the forward, with the facts about the backward. */
export function backwardDocument(
  version: string,
  problem: HashedFile,
  { emulation, seconds }: BackwardResult,
  { saved, dout }: BackwardFiles,
): object {
  const { ownForward, settings, counters, evidence } = emulation;
  const forward = ownForward ?? { ...emulation, counters: {}, evidence: [] };
  return {
    ...emulateDocument(version, problem, { emulation: forward, seconds }),
    counters: forward.counters,
    evidence: forward.evidence,
    saved,
    backward: { dout, settings, counters, evidence },
  };
}
