import { formats, type Tensor } from '../formats/index.js';
import { elementsOver } from './element-storage.js';
import { type Problem, problemShape, type Window } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { printable, quoted } from './messages.js';
import type { TensorFile } from './tensor-file.js';

/** The order of a tensor's dimensions: batch, heads, seqlen, dim or batch, seqlen, heads, dim. */
export const layouts = ['bhsd', 'bshd'] as const;
export type Layout = (typeof layouts)[number];

/**
 * A [batch, seqlen, heads, dim] (or [seqlen, heads, dim]) tensor as [batch, heads, seqlen, dim] (or
 * [heads, seqlen, dim]), copied; a tensor of any other rank is returned as it is.
 */
export function toHeadsFirst(tensor: Tensor): Tensor {
  const { format, shape, data } = tensor;
  if (shape.length !== 3 && shape.length !== 4) return tensor;
  const [seqlen, heads, dim] = shape.slice(-3) as [number, number, number];
  const batch = shape.length === 4 ? shape[0] : 1;
  const rowBytes = (dim * formats[format].storageBits) / 8;
  const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const target = new Uint8Array(data.byteLength);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let s = 0; s < seqlen; s++) {
        const from = ((b * seqlen + s) * heads + h) * rowBytes;
        const to = ((b * heads + h) * seqlen + s) * rowBytes;
        target.set(source.subarray(from, from + rowBytes), to);
      }
  return {
    format,
    shape: [...shape.slice(0, -3), heads, seqlen, dim],
    data: elementsOver(format, target.buffer),
  };
}

/** What a caller fixes about a problem; what is left out comes from the file, else from defaults. */
export interface ProblemSettings {
  readonly scale?: number | undefined;
  readonly causal?: boolean | undefined;
  readonly window?: Window | null | undefined;
  readonly softcap?: number | null | undefined;
  readonly layout?: Layout | undefined;
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

function parseBoolean(text: string, name: string): boolean {
  const value = truths[text.trim().toLowerCase()];
  if (value === undefined) throw new RequestError(`${name} is ${quoted(text)}; give true or false`);
  return value;
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
  const layout = layouts.find((known) => known === text.trim().toLowerCase());
  if (layout === undefined)
    throw new RequestError(`${name} is ${quoted(text)}; give ${layouts.join(' or ')}`);
  return layout;
}

/**
 * The most that the sizes other than zero of a tensor without elements may come to. Where a tensor has
 * elements, the file's length bounds its sizes; here nothing else would, and a file of some bytes could
 * ask for an output of 2^50 rows.
 */
const mostEmptySizes = 2 ** 16;

/** @throws RequestError for a tensor without elements whose other sizes exceed `mostEmptySizes` */
function checkEmptySizes(file: TensorFile, name: string): void {
  const entry = file.entries.get(name);
  if (entry === undefined || entry.elements > 0) return;
  const rest = entry.shape.reduce((product, size) => product * (size === 0 ? 1 : size), 1);
  if (rest > mostEmptySizes)
    throw new RequestError(
      `${printable(file.path)}: tensor ${quoted(name)} of shape [${entry.shape.join(', ')}] has no ` +
        `elements, but sizes that come to more than ${mostEmptySizes}; make them smaller`,
    );
}

/** A finite number as text. */
export function parseScale(text: string, name = 'scale'): number {
  return parseNumber(text, name);
}

/**
 * The settings a file notes about itself: metadata keys `scale`, `causal`, `window`, `softcap`,
 * `layout`, or the same keys of a JSON object under `meta`, as capture scripts like to write it.
 */
function fileSettings(file: TensorFile): ProblemSettings {
  const notes = fileNotes(file);
  const note = <T>(key: string, parse: (text: string, name: string) => T): T | undefined =>
    Object.hasOwn(notes, key)
      ? parse(notes[key], `${printable(file.path)}: metadata ${key}`)
      : undefined;
  return {
    scale: note('scale', parseScale),
    causal: note('causal', parseBoolean),
    window: note('window', parseWindow),
    softcap: note('softcap', parseSoftcap),
    layout: note('layout', parseLayout),
  };
}

function fileNotes(file: TensorFile): Record<string, string> {
  return { ...nestedNotes(file), ...file.metadata };
}

/** What a file notes about itself under a key, and where, for messages; undefined where it does not. */
export function problemNote(
  file: TensorFile,
  key: string,
): { readonly text: string; readonly where: string } | undefined {
  const notes = fileNotes(file);
  return Object.hasOwn(notes, key)
    ? { text: notes[key], where: `${printable(file.path)}: metadata ${key}` }
    : undefined;
}

/** The settings of a JSON object under `meta`, as capture scripts like to write it; none without one. */
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

/** The layout that holds for the tensors of a problem's files. */
export function problemLayout(file: TensorFile, settings: ProblemSettings): Layout {
  return settings.layout ?? fileSettings(file).layout ?? 'bhsd';
}

/**
 * The problem that a file holds: tensors `q`, `k`, `v` of rank 3 or 4, and what it is to compute from
 * the settings, else the file's metadata, else FlashAttention's defaults (scale 1/√d, no mask).
 * @throws RequestError when a tensor is missing or the shapes or settings do not fit together
 */
export async function readProblem(
  file: TensorFile,
  settings: ProblemSettings = {},
): Promise<Problem> {
  const noted = fileSettings(file);
  const layout = problemLayout(file, settings);
  const read = async (name: string) => {
    checkEmptySizes(file, name);
    const tensor = await file.read(name);
    if (tensor.shape.length !== 3 && tensor.shape.length !== 4)
      throw new RequestError(
        `${printable(file.path)}: tensor ${quoted(name)} has shape [${tensor.shape.join(', ')}]; give it rank 3 [heads, seqlen, dim] or rank 4 [batch, heads, seqlen, dim]`,
      );
    return layout === 'bshd' ? toHeadsFirst(tensor) : tensor;
  };
  const [q, k, v] = [await read('q'), await read('k'), await read('v')];
  const dim = q.shape.at(-1)!;
  const problem: Problem = {
    q,
    k,
    v,
    scale: settings.scale ?? noted.scale ?? (dim === 0 ? 1 : 1 / Math.sqrt(dim)),
    causal: settings.causal ?? noted.causal ?? false,
    window: settings.window !== undefined ? settings.window : (noted.window ?? null),
    softcap: settings.softcap !== undefined ? settings.softcap : (noted.softcap ?? null),
  };
  try {
    problemShape(problem);
  } catch (error) {
    if (error instanceof RequestError)
      throw new RequestError(`${printable(file.path)}: ${error.message}`);
    throw error;
  }
  return problem;
}

/**
 * The settings of a problem as a tensor file notes them, so that `readProblem` gives the same numbers
 * back: scale, causal, window, softcap.
 */
export function problemMetadata({ scale, causal, window, softcap }: Problem): {
  readonly [setting: string]: string;
} {
  return {
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    causal: String(causal),
    window: window === null ? 'none' : `${window.left},${window.right}`,
    softcap: softcap === null ? 'none' : String(softcap),
  };
}
