import {
  posedRows,
  posedTensors,
  scaleTensors,
  type Problem,
  type StoredTensors,
} from '../problem/index.js';
import { writeSafetensors } from './write-safetensors.js';
import type { WriteOptions } from './atomic-write.js';

/** The layout in which padded sequences are posed; null if there are none. */
export function posedLayout(problem: Problem): 'bhsd' | 'bshd' | null {
  const rows = posedRows(problem);
  const padded = (rows === null ? [] : [rows.queries, rows.keys]).find(
    ({ form }) => form === 'padded',
  );
  if (padded === undefined) return null;
  return padded.headsFirst ? 'bhsd' : 'bshd';
}

/** The layout of a problem's pages if it differs from the default; null otherwise. */
export function posedKvLayout(problem: Problem): 'HND' | null {
  const keys = posedRows(problem)?.keys;
  return keys?.form === 'paged' && keys.headsFirst ? 'HND' : null;
}

/**
 * The settings of a problem as a tensor file notes them, so that `readProblem` gives the same numbers back.
 */
export function problemMetadata(problem: Problem): { readonly [setting: string]: string } {
  const { scale, causal, window, softcap, prefix, blockMask, dropout, sink } = problem;
  const layout = posedLayout(problem);
  const kvLayout = posedKvLayout(problem);
  return {
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    causal: String(causal),
    window: window === null ? 'none' : `${window.left},${window.right}`,
    softcap: softcap === null ? 'none' : String(softcap),
    ...(prefix === undefined ? {} : { prefix: String(prefix) }),
    ...(blockMask === undefined
      ? {}
      : { block_q: String(blockMask.blockQueries), block_k: String(blockMask.blockKeys) }),
    ...(dropout === undefined ? {} : { dropout_p: String(dropout.probability) }),
    ...(sink === undefined ? {} : { lse_sink: String(sink.inLse) }),
    ...(layout === null ? {} : { layout }),
    ...(kvLayout === null ? {} : { kv_layout: kvLayout }),
    ...(problem.sequences === undefined ? scaleTensors(problem).metadata : {}),
  };
}

/** Extras to write with a problem: outputs of a kernel in the problem's layout, and notes. */
export interface ProblemExtras {
  readonly tensors?: StoredTensors;
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes a problem as a safetensors file that `readProblem` reads back the same: its tensors as posed, its settings in
 * the metadata.
 * @throws RequestError when it cannot be written
 */
export async function writeProblem(
  path: string,
  problem: Problem,
  { tensors = {}, metadata = {} }: ProblemExtras = {},
  options: WriteOptions = {},
): Promise<void> {
  await writeSafetensors(
    path,
    { ...posedTensors(problem), ...tensors },
    { ...problemMetadata(problem), ...metadata },
    options,
  );
}
