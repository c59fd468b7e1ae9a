import { RequestError } from '../../../request-error.js';
import { printable } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';

/** The names that dumps of other programs have for what an audit reads, in lower case: transformers, xFormers, FlashAttention, JAX. */
const usualNames = {
  q: ['query', 'queries', 'query_states', 'query_layer', 'xq'],
  k: ['key', 'keys', 'key_states', 'key_layer', 'xk'],
  v: ['value', 'values', 'value_states', 'value_layer', 'xv'],
  out: [
    ...['o', 'output', 'attn_output', 'attn_out', 'attention_output', 'attention_out'],
    ...['context', 'context_layer', 'result', 'y'],
  ],
  lse: ['softmax_lse', 'logsumexp', 'log_sum_exp', 'softmax_logsumexp'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** A tensor that files of other programs have under other names. */
type UsualName = keyof typeof usualNames;

/** The tensor of a file that is likely the one of a name, by its own name; null where the file has none, and where it has that name itself. */
function likelyTensor({ entries }: Pick<TensorFile, 'entries'>, name: UsualName): string | null {
  if (entries.has(name)) return null;
  const names = [...entries.keys()];
  const known: readonly string[] = [name, ...usualNames[name]];
  return names.find((one) => known.includes(one.toLowerCase())) ?? null;
}

/** The tensors of a file that are likely those that an audit reads under other names, by the names that it reads them by. */
export function likelyTensors(
  file: Pick<TensorFile, 'entries'>,
): Readonly<Partial<Record<UsualName, string>>> {
  const found = (Object.keys(usualNames) as UsualName[]).flatMap((name) => {
    const likely = likelyTensor(file, name);
    return likely === null ? [] : [[name, likely] as const];
  });
  return Object.fromEntries(found);
}

/** A word of a command line as a shell reads it. */
function shellWord(text: string): string {
  return /^[\w:=./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The options that say where q, k and v of a file are that has them under other names, as one types them; none where it has their names. */
function inputRenames(file: TensorFile): readonly string[] {
  return (['q', 'k', 'v'] as const).flatMap((name) => {
    const likely = likelyTensor(file, name);
    return likely === null ? [] : [`--tensor ${shellWord(`${name}=:${likely}`)}`];
  });
}

/** The option that says where an output is that a file has under another name, as one types it; null where there is no such tensor. */
export function outputRename(file: TensorFile, name: 'out' | 'lse', option: string): string | null {
  const likely = likelyTensor(file, name);
  return likely === null ? null : `--${option} ${shellWord(`:${likely}`)}`;
}

/**
 * @param outputs options that name the file's outputs as well
 * @throws RequestError with the options that name q, k and v, where a file has them under other names
 */
export function refuseMisnamedInputs(file: TensorFile, outputs: readonly string[] = []): void {
  const renames = inputRenames(file);
  if (renames.length === 0) return;
  const missing = ['q', 'k', 'v'].find((name) => !file.entries.has(name));
  throw new RequestError(
    `${printable(file.path)}: has no tensor "${missing}", and others that are likely meant: add ${[...renames, ...outputs].join(' ')}`,
  );
}
