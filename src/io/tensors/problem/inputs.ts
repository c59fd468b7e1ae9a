import { ownScaleNames, type GivenDescales } from '../scales.js';
import type { TensorFile } from '../tensor-file.js';
import { ownTensor } from './tensor-argument.js';

/** The kind of elements that an input has. */
export type InputElements = 'numbers' | 'integers' | 'truths';

/**
 * The tensors that a problem may have beside q, k and v, by their names in its file: the shapes and meanings are
 * FlashAttention's and PyTorch's, and docs/guide/problems.md describes them. Each has an option of its name on the
 * command line, `src/cli/options/problem-options.ts`.
 */
export const problemInputs = {
  mask: 'truths',
  bias: 'numbers',
  alibi_slopes: 'numbers',
  sink: 'numbers',
  rope_cos: 'numbers',
  rope_sin: 'numbers',
  q_segments: 'integers',
  k_segments: 'integers',
  kv_num_blocks: 'integers',
  kv_indices: 'integers',
  full_kv_num_blocks: 'integers',
  full_kv_indices: 'integers',
  kv_index: 'integers',
  block_index: 'integers',
  cu_seqlens: 'integers',
  cu_seqlens_q: 'integers',
  cu_seqlens_k: 'integers',
  seqused_q: 'integers',
  seqused_k: 'integers',
  leftpad_k: 'integers',
  block_table: 'integers',
  paged_kv_indptr: 'integers',
  paged_kv_indices: 'integers',
  paged_kv_last_page_len: 'integers',
  dropout_mask: 'truths',
} as const satisfies Readonly<Record<string, InputElements>>;

/** The name of one of {@link problemInputs}. */
export type ProblemInputName = keyof typeof problemInputs;

/** Names of inputs, in the order of the table. */
export const problemInputNames = Object.keys(problemInputs) as readonly ProblemInputName[];

/** The places of a problem's inputs, and the ones to leave out. */
export interface InputChoice {
  /** Inputs in other places than under their names in the problem's file, as `<file>[:<tensor>]`. */
  readonly inputs?: Readonly<Partial<Record<ProblemInputName, string>>> | undefined;
  /** Descales that replace those of the file. */
  readonly descales?: GivenDescales | undefined;
  /** Names of tensors and metadata of the problem's file to leave out. */
  readonly ignored?: readonly string[] | undefined;
}

/** The place of an input, as `<file>[:<tensor>]`; null for one that the problem does not have. */
export function inputOf(
  file: TensorFile,
  name: ProblemInputName,
  { inputs = {}, ignored = [] }: InputChoice,
): string | null {
  return inputs[name] ?? (file.entries.has(name) && !ignored.includes(name) ? `:${name}` : null);
}

/** The inputs that each put keys in pages. */
const pageInputs = ['block_table', 'paged_kv_indptr'] as const;

/** Names of FlashInfer's tensor that holds keys and values of pages: in its wrappers, and in its functions. */
export const cacheNames: readonly string[] = ['kv_cache', 'paged_kv_cache'];

/**
 * The tensors of the problem's own file that hold keys and values together: read in place of k and v if keys are in
 * pages.
 */
export function cachesOf(file: TensorFile, { ignored = [] }: InputChoice): readonly string[] {
  return cacheNames.filter((name) => file.entries.has(name) && !ignored.includes(name));
}

/** Notes that have a meaning only beside an input. */
const noteNeeds: Readonly<Record<string, readonly ProblemInputName[]>> = {
  dropout_p: ['dropout_mask'],
  block_q: ['kv_num_blocks', 'full_kv_num_blocks', 'kv_index', 'block_index'],
  block_k: ['kv_num_blocks', 'full_kv_num_blocks'],
  block_size: ['block_index'],
  kv_index_of: ['kv_index'],
  lse_sink: ['sink'],
  kv_layout: pageInputs,
};

/** Names of the tensors of a problem's file that are read beside q, k and v, and of its metadata. */
export interface ReadNames {
  readonly tensors: readonly string[];
  readonly notes: readonly string[];
}

/** The names of a file that `readProblem` reads. */
export function namesRead(file: TensorFile, choice: InputChoice): ReadNames {
  const has = (name: ProblemInputName) => inputOf(file, name, choice) !== null;
  const scales = ownScaleNames(file.beside, choice.descales).filter(
    (name) => choice.ignored?.includes(name) !== true,
  );
  return {
    tensors: [
      ...problemInputNames.flatMap((name) => {
        const source = inputOf(file, name, choice);
        const own = source === null ? null : ownTensor(source, file.beside, name);
        return own === null ? [] : [own];
      }),
      ...(pageInputs.some(has) ? cachesOf(file, choice) : []),
      ...scales,
    ],
    notes: Object.entries(noteNeeds).flatMap(([note, inputs]) =>
      inputs.some(has) && choice.ignored?.includes(note) !== true ? [note] : [],
    ),
  };
}
