import { RequestError } from '../../../request-error.js';
import { printable, quoted, shortened } from '../messages.js';
import { settingNamed } from '../problem/misnamed-settings.js';
import { keptNotes } from '../problem/settings.js';
import type { TensorFile } from '../tensor-file.js';
import type { RecurrentSettings } from './settings.js';

/** Names of a probability of dropout, and values without an effect, lower case. */
const dropout = {
  names: /^(dropout|dropout_p|p_dropout|attn_dropout)$/,
  harmless: /^(0(\.0*)?|none|null|false)?$/,
};

/** A note that says that later tokens are not seen: every recurrence is so. */
const saysCausal = /^(none|null|true|1)?$/;

/** What a note says that no recurrence has; null for nothing. */
function contradiction(key: string, text: string): string | null {
  const value = text.trim().toLowerCase();
  if (dropout.names.test(key.toLowerCase()))
    return dropout.harmless.test(value) ? null : 'has no dropout';
  const named = settingNamed(key);
  if (named?.setting === 'causal') return saysCausal.test(value) ? null : 'is causal';
  if (named?.setting !== 'window' && named?.setting !== 'softcap') return null;
  return named.harmless.test(value) ? null : `has no ${named.setting}`;
}

/**
 * Refuses notes of softmax attention that would change its output: a recurrence would be judged as if they were not there.
 * @throws RequestError for a window, a softcap, dropout, or no causal mask, under any name that kernels give them
 */
export function refuseSoftmaxNotes(file: TensorFile, settings: RecurrentSettings): void {
  for (const [key, text] of Object.entries(keptNotes(file, settings))) {
    const said = contradiction(key, text);
    if (said !== null)
      throw new RequestError(
        `${printable(file.path)}: metadata ${shortened(key)} is ${quoted(text)}, but linear attention ${said}; leave it out with --ignore ${shortened(key)}`,
      );
  }
}
