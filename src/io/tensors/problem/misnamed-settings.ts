import type { Window } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, quoted, shortened, tensorIn } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';
import {
  keptNotes,
  parseBoolean,
  parseLayout,
  parseScale,
  parseSoftcap,
  parseWindow,
  type ProblemSettings,
} from './settings.js';

/** Names of a setting elsewhere. */
export interface OtherNames {
  readonly setting: 'scale' | 'causal' | 'window' | 'softcap' | 'layout';
  /** Names in FlashAttention, PyTorch, FlashInfer, Triton's tutorials, Transformer Engine and others, lower case. */
  readonly names: RegExp;
  /** Values, lower case, that have no effect. */
  readonly harmless: RegExp;
  /**
   * Parses a value.
   * @throws RequestError for one without a meaning
   */
  readonly parse: (text: string) => unknown;
}

const otherNames: readonly OtherNames[] = [
  {
    setting: 'scale',
    names:
      /^((softmax|sm|qk|attn|attention|scores?|logits?)_?)?scale$|^(softmax_)?scaling$|^scale_factor$/,
    harmless: /^(none|null)?$/,
    parse: (text) => parseScale(text),
  },
  {
    setting: 'causal',
    names: /^((is|use)_)?causal(_?mask(ing)?)?$|^causality$/,
    harmless: /^(none|null|false|0)?$/,
    parse: (text) => parseBoolean(text, 'causal'),
  },
  {
    setting: 'window',
    names:
      /^((sliding|local|attn|attention)_)?window(_size)?(_(left|right))?$|^(left|right)_window$/,
    harmless: /^(none|null|0|-1|[[(]? *-1 *, *-1 *[\])]?)?$/,
    parse: (text) => parseWindow(text.replace(/^\((.*)\)$/, '$1')),
  },
  {
    setting: 'softcap',
    names:
      /^((attn|attention|scores?|logits?|tanh)_?)*soft_?cap(ping)?$|^(attn_)?logits?_?cap(ping)?$/,
    harmless: /^(none|null|0(\.0*)?)?$/,
    parse: (text) => parseSoftcap(text),
  },
  {
    setting: 'layout',
    names: /^layout$|^(qkv|tensor|attn|input)_layout$|^qkv_format$/,
    harmless: /^(none|null|bhsd|hnd)?$/,
    parse: (text) => parseLayout(text),
  },
];

/** The setting that a key is a name of, here or elsewhere; undefined for none. */
export function settingNamed(key: string): OtherNames | undefined {
  return otherNames.find(({ names }) => names.test(key.toLowerCase()));
}

/** The most elements of a tensor that may be a setting: a window has two. */
const settingElements = 2;

/** Whether a text means the same as a setting. */
function means({ parse }: OtherNames, text: string, setting: unknown): boolean {
  try {
    return JSON.stringify(parse(text.trim())) === JSON.stringify(setting);
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
}

/** A setting in the form of its option. */
function written(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value ?? 'none');
  const { left, right } = value as Window;
  return `${left},${right}`;
}

/**
 * Refuses settings that a file has under names that nothing reads, such as `softmax_scale`, `is_causal` or `Scale`:
 * attention would be judged without them. One without an effect, or equal to a setting that is read, is accepted.
 * @param settled all settings that are read or given
 * @throws RequestError with the name to use
 */
export function refuseMisnamedSettings(file: TensorFile, settled: ProblemSettings): void {
  for (const [key, text] of Object.entries(keptNotes(file, settled))) {
    const other = settingNamed(key);
    if (other === undefined || key === other.setting) continue;
    const { setting, harmless } = other;
    if (harmless.test(text.trim().toLowerCase()) || means(other, text, settled[setting])) continue;
    const where = `${printable(file.path)}: metadata ${shortened(key)} is ${quoted(text)}`;
    throw new RequestError(
      settled[setting] === undefined
        ? `${where}, which is not read; call it ${setting}, give --${setting}, or leave it out with --ignore ${shortened(key)}`
        : `${where}, but ${setting} is ${written(settled[setting])}; leave it out with --ignore ${shortened(key)}`,
    );
  }
  for (const [name, { elements }] of file.entries) {
    const setting = settingNamed(name)?.setting;
    if (setting === undefined || elements > settingElements) continue;
    if (settled[setting] !== undefined || settled.ignored?.includes(name) === true) continue;
    throw new RequestError(
      `${tensorIn(file.path, name)} is not read; give --${setting}, or ${setting} in the metadata, or leave it out with --ignore ${shortened(name)}`,
    );
  }
}
