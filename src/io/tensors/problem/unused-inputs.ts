import type { TensorFile } from '../tensor-file.js';
import type { ReadNames } from './inputs.js';
import { nestedNotes } from './settings.js';

/** Contents of a problem's file that nothing reads, each as the file spells it. */
export interface UnusedInputs {
  /** Tensors and metadata keys (with "metadata " before them) that change the result of attention. */
  readonly ofAttention: readonly string[];
  /** Tensors of the backward pass. */
  readonly ofGradients: readonly string[];
  /** Tensors with names that neither tell their purpose nor mark them as a kernel's outputs. */
  readonly unknown: readonly string[];
}

/**
 * Names under which FlashAttention, PyTorch, xFormers, FlexAttention, vLLM and cuDNN keep inputs that
 * change the output of attention, lower case.
 */
const attentionInputs: readonly RegExp[] = [
  /^(attn|attention|key_padding|padding|block|causal|score)?_?masks?$/,
  /^(attn|attention|alibi|rel_pos|position)?_?bias$/,
  /^alibi(_slopes)?$/,
  /^(learnable_|attn_|attention_)?sinks?$|^s_aux$/,
  /^(q|k|kv|query|key)?_?segments?(_ids?)?$|^(document|doc|segment)_ids?$/,
  /^(full_)?(kv|q)_(num_blocks|indices)$/,
  /^(kv_|block_|top_?k_)?(index|indices|idx)$/,
  /^cu_?seq_?lens?(_.+)?$|^max_seqlen(_.+)?$/,
  /^seq_?used(_.+)?$|^seq_?lens?(_.+)?$|^cache_seqlens$|^leftpad_k$|^cache_leftpad$/,
  /^(block|page)_tables?$|^(paged_)?kv_(page_)?ind.*$|^qo_indptr$|^(paged_)?kv_last_page_lens?$|^cache_batch_idx$/,
  /^dropout_(mask|seed|offset)$|^rng_state$/,
  /^[qkvopsd]_?(de)?scales?$/,
  /^rotary_(cos|sin)$|^q_v$|^qv$|^(k|v)_(new|cache)$|^(paged_)?kv_cache$|^k_?rope$|^q_?rope$/,
];

/**
 * Metadata keys that change the output of attention, lower case, and the values that leave it alone. Settings under
 * unknown names are refused earlier: `refuseMisnamedSettings`.
 */
const attentionNotes: readonly (readonly [key: RegExp, harmless: RegExp])[] = [
  [/^(dropout|dropout_p|p_dropout|attn_dropout)$/, /^(0(\.0*)?|none|null|false)$/],
  [/^kv_layout$/, /^(none|null|nhd)$/],
  [
    /^(lse_sink|block_q|block_k|page_size|block_size|kv_index_of|kv_index_duplicates|num_splits)$/,
    /^(none|null|0)$/,
  ],
];

/** Tensors of the backward pass. */
const gradients = /^(d|grad_?)(out(put)?|o|q|k|v|query|key|value|bias|sinks?)$/;

/** Last parts of the names of kernel outputs: "fa4.out" is one, and so is "softmax_lse". */
const outputs =
  /^((attn|attention|softmax|context)_?)?(out(put)?s?|o|lse|logsumexp|result|max|rescales)(_partial|_accum)?$/;

/** The last part of a name that dots, slashes or colons divide. */
function lastPart(name: string): string {
  return name.toLowerCase().split(/[./:]/).at(-1)!;
}

/** Keys of a file's metadata, and of the object under `meta`, that would change the result. */
function unusedNotes(file: TensorFile, read: readonly string[]): string[] {
  return Object.entries({ ...nestedNotes(file), ...file.metadata })
    .filter(([key]) => !read.includes(key))
    .filter(([key, value]) =>
      attentionNotes.some(
        ([known, harmless]) =>
          known.test(key.toLowerCase()) && !harmless.test(value.trim().toLowerCase()),
      ),
    )
    .map(([key]) => `metadata ${key}`);
}

/**
 * The contents of a problem's file that nothing reads. A kernel that was given them is judged without
 * them, so readers of the verdict have to know.
 *
 * @param read the names that are read, beside q, k and v
 */
export function unusedInputs(
  file: TensorFile,
  read: ReadNames = { tensors: [], notes: [] },
): UnusedInputs {
  const used = new Set(['q', 'k', 'v', ...read.tensors]);
  const left = [...file.entries.keys()].filter((name) => !used.has(name));
  const isOf = (name: string) => ({
    attention: attentionInputs.some((known) => known.test(name.toLowerCase())),
    gradients: gradients.test(lastPart(name)),
    outputs: outputs.test(lastPart(name)),
  });
  return {
    ofAttention: [...left.filter((name) => isOf(name).attention), ...unusedNotes(file, read.notes)],
    ofGradients: left.filter((name) => isOf(name).gradients),
    unknown: left.filter((name) => !Object.values(isOf(name)).some(Boolean)),
  };
}
