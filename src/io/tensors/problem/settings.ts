import type { Window } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, quoted } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';
import type { InputChoice } from './inputs.js';

/** The order of a tensor's dimensions: batch, heads, seqlen, dim or batch, seqlen, heads, dim. */
export const layouts = ['bhsd', 'bshd'] as const;
export type Layout = (typeof layouts)[number];

/** Layouts by their names where a sequence's rows are tokens, as in linear attention. */
const tokenLayouts: Readonly<Record<string, Layout>> = { bhtd: 'bhsd', bthd: 'bshd' };

/** The order of a page's dimensions, in FlashInfer's words: slots, heads, dim or heads, slots, dim. */
const kvLayouts = ['NHD', 'HND'] as const;
export type KvLayout = (typeof kvLayouts)[number];

/** Meanings of the entries of `kv_index`. */
const kvIndexMeanings = ['positions', 'slots'] as const;
export type KvIndexOf = (typeof kvIndexMeanings)[number];

/** Settings of a problem that a caller fixes; those left out come from the file, else from defaults. */
export interface ProblemSettings extends InputChoice {
  readonly scale?: number | undefined;
  readonly causal?: boolean | undefined;
  readonly window?: Window | null | undefined;
  readonly softcap?: number | null | undefined;
  readonly layout?: Layout | undefined;
  /** The layout of keys and values in pages; NHD by default, as in FlashInfer. */
  readonly kvLayout?: KvLayout | undefined;
  /** Number of keys that every query sees, whatever causal and window say. */
  readonly prefix?: number | undefined;
  /** The probability with which dropout drops a weight. */
  readonly dropoutP?: number | undefined;
  /** Queries and keys of a block of a block mask. */
  readonly blockQ?: number | undefined;
  readonly blockK?: number | undefined;
  /** Keys of a block of `block_index`. */
  readonly blockSize?: number | undefined;
  /** The meaning of the entries of `kv_index`: positions of the sequence by default, or slots of the cache. */
  readonly kvIndexOf?: KvIndexOf | undefined;
  /** Columns of K that are V, for a problem without V of its own. */
  readonly vDim?: number | undefined;
  /** Whether the LSE includes the sink. */
  readonly lseSink?: boolean | undefined;
  /** Whether `Problem.stored` keeps the tensors as they are posed, unused slots too, to be given to a kernel. */
  readonly keepsPosed?: boolean | undefined;
}

function parseNumber(text: string, name: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new RequestError(`${name} is ${quoted(text)}; give a finite number`);
  return value;
}

const truths: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  '1': true,
  '0': false,
};

/** A truth as text. */
export function parseBoolean(text: string, name: string): boolean {
  const value = truths[text.trim().toLowerCase()];
  if (value === undefined) throw new RequestError(`${name} is ${quoted(text)}; give true or false`);
  return value;
}

/** Keys of a prefix as text: a whole number, 0 for none. */
export function parsePrefix(text: string, name = 'prefix'): number {
  if (['none', 'null', ''].includes(text.trim())) return 0;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RequestError(`${name} is ${quoted(text)}; give a whole number of keys, 0 for none`);
  return value;
}

/** A probability of dropout as text, from 0 to below 1. */
export function parseDropout(text: string, name = 'dropout_p'): number {
  if (['none', 'null', ''].includes(text.trim())) return 0;
  const value = Number(text);
  if (!(value >= 0 && value < 1))
    throw new RequestError(`${name} is ${quoted(text)}; give a number from 0 to below 1`);
  return value;
}

/** Queries or keys of a block as text. */
export function parseBlockSize(text: string, name: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < 1)
    throw new RequestError(`${name} is ${quoted(text)}; give a whole number, 1 or more`);
  return value;
}

/** The meaning of the entries of `kv_index` as text. */
export function parseKvIndexOf(text: string, name = 'kv_index_of'): KvIndexOf {
  const word = kvIndexMeanings.find((known) => known === text.trim().toLowerCase());
  if (word === undefined)
    throw new RequestError(`${name} is ${quoted(text)}; give ${kvIndexMeanings.join(' or ')}`);
  return word;
}

/** A softcap as text: a positive number, or "none", "null" or "0" for none. */
export function parseSoftcap(text: string, name = 'softcap'): number | null {
  if (['none', 'null', ''].includes(text.trim())) return null;
  const value = parseNumber(text, name);
  if (value < 0)
    throw new RequestError(`${name} is ${quoted(text)}; give a positive number, or none`);
  return value === 0 ? null : value;
}

/** A window as text: "left,right" in keys, -1 for no limit on that side, or "none". */
export function parseWindow(text: string, name = 'window'): Window | null {
  const trimmed = text.trim().replace(/^\[(.*)\]$/, '$1');
  if (['none', 'null', ''].includes(trimmed)) return null;
  const parts = trimmed.split(',').map((part) => Number(part.trim() === '' ? NaN : part));
  const [left, right] = parts;
  const valid = parts.length === 2 && parts.every((n) => Number.isSafeInteger(n) && n >= -1);
  if (!valid)
    throw new RequestError(
      `${name} is ${quoted(text)}; give "left,right" in whole keys, -1 for no limit, or none`,
    );
  return left === -1 && right === -1 ? null : { left: left!, right: right! };
}

/** A layout as text. */
export function parseLayout(text: string, name = 'layout'): Layout {
  const word = text.trim().toLowerCase();
  const layout = layouts.find((known) => known === word) ?? tokenLayouts[word];
  if (layout === undefined)
    throw new RequestError(
      `${name} is ${quoted(text)}; give ${layouts.join(' or ')}, of linear attention also ${Object.keys(tokenLayouts).join(' or ')}`,
    );
  return layout;
}

/** A layout of pages as text. */
export function parseKvLayout(text: string, name = 'kv_layout'): KvLayout {
  const layout = kvLayouts.find((known) => known === text.trim().toUpperCase());
  if (layout === undefined)
    throw new RequestError(`${name} is ${quoted(text)}; give ${kvLayouts.join(' or ')}`);
  return layout;
}

/** A finite number as text. */
export function parseScale(text: string, name = 'scale'): number {
  return parseNumber(text, name);
}

/** The keys of a file's metadata that note settings. */
type SettingNote =
  | 'scale'
  | 'causal'
  | 'window'
  | 'softcap'
  | 'layout'
  | 'kv_layout'
  | 'prefix'
  | 'dropout_p'
  | 'block_q'
  | 'block_k'
  | 'block_size'
  | 'kv_index_of'
  | 'v_dim'
  | 'lse_sink';

/**
 * The settings that a file notes about itself: keys of its metadata, or the same keys of a JSON object under
 * `meta`, as capture scripts often write it.
 */
export function fileSettings(file: TensorFile, choice: InputChoice = {}): ProblemSettings {
  const notes = keptNotes(file, choice);
  const note = <T>(key: SettingNote, parse: (text: string, name: string) => T): T | undefined =>
    Object.hasOwn(notes, key)
      ? parse(notes[key], `${printable(file.path)}: metadata ${key}`)
      : undefined;
  return {
    scale: note('scale', parseScale),
    causal: note('causal', parseBoolean),
    window: note('window', parseWindow),
    softcap: note('softcap', parseSoftcap),
    layout: note('layout', parseLayout),
    kvLayout: note('kv_layout', parseKvLayout),
    prefix: note('prefix', parsePrefix),
    dropoutP: note('dropout_p', parseDropout),
    blockQ: note('block_q', parseBlockSize),
    blockK: note('block_k', parseBlockSize),
    blockSize: note('block_size', parseBlockSize),
    kvIndexOf: note('kv_index_of', parseKvIndexOf),
    vDim: note('v_dim', parseBlockSize),
    lseSink: note('lse_sink', parseBoolean),
  };
}

function fileNotes(file: TensorFile): Record<string, string> {
  return { ...nestedNotes(file), ...file.metadata };
}

/** The notes of a file about itself, without those left out. */
export function keptNotes(
  file: TensorFile,
  { ignored = [] }: InputChoice,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fileNotes(file)).filter(([key]) => !ignored.includes(key)),
  );
}

/** A file as if it lacked the tensors that are left out. */
export function withoutIgnored(file: TensorFile, { ignored = [] }: InputChoice): TensorFile {
  if (ignored.length === 0) return file;
  const entries = new Map([...file.entries].filter(([name]) => !ignored.includes(name)));
  return { ...file, entries };
}

/** The note of a file about itself under a key, and its place, for messages; undefined if there is none. */
export function problemNote(
  file: TensorFile,
  key: string,
): { readonly text: string; readonly where: string } | undefined {
  const notes = fileNotes(file);
  return Object.hasOwn(notes, key)
    ? { text: notes[key], where: `${printable(file.path)}: metadata ${key}` }
    : undefined;
}

/** The settings of a JSON object under `meta`, as capture scripts often write it; none without one. */
export function nestedNotes(file: TensorFile): Record<string, string> {
  try {
    const parsed: unknown = JSON.parse(file.metadata['meta'] ?? 'null');
    if (typeof parsed !== 'object' || parsed === null) return {};
    return Object.fromEntries(Object.entries(parsed).map(([key, value]) => [key, String(value)]));
  } catch {
    // Somebody else's "meta": it is not ours to judge.
    return {};
  }
}

/** The layout of the tensors in a problem's files. */
export function problemLayout(file: TensorFile, settings: ProblemSettings): Layout {
  return settings.layout ?? fileSettings(file, settings).layout ?? 'bhsd';
}
