import { recurrentFamilies, type RecurrentFamily } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, quoted } from '../messages.js';
import { keptNotes, parseBoolean, parseScale, type ProblemSettings } from '../problem/settings.js';
import type { TensorFile } from '../tensor-file.js';

/** The order of a state's dimensions: key dimension, value dimension, or the reverse. */
export const stateLayouts = ['kv', 'vk'] as const;
/** One of {@link stateLayouts}. */
export type StateLayout = (typeof stateLayouts)[number];

/** Settings of a problem of linear attention that a caller fixes; those left out come from the file, else from defaults. */
export interface RecurrentSettings extends Pick<ProblemSettings, 'scale' | 'layout' | 'ignored'> {
  readonly family?: RecurrentFamily | undefined;
  /** The layout of all states that are read; kv by default, vk of mamba2. */
  readonly stateLayout?: StateLayout | undefined;
  /** The ε of q and k divided by √(Σx² + ε); null for none. */
  readonly normalisation?: number | null | undefined;
  /** Inputs in other places than under their names in the problem's file, as `<file>[:<tensor>]`. */
  readonly cuSeqlens?: string | undefined;
  readonly initialState?: string | undefined;
}

/** The ε that flash-linear-attention's kernels normalise by. Source: fla.modules.l2norm, `eps`. */
const usualEpsilon = 1e-6;

/** A family of linear attention as text. @throws RequestError for another */
export function parseFamily(text: string, name = 'family'): RecurrentFamily {
  const word = text.trim().toLowerCase();
  const families = Object.keys(recurrentFamilies) as RecurrentFamily[];
  const family = families.find((known) => known === word || known === word.replaceAll('_', '-'));
  if (family === undefined)
    throw new RequestError(`${name} is ${quoted(text)}; give one of ${families.join(', ')}`);
  return family;
}

/** A layout of states as text. @throws RequestError for another */
export function parseStateLayout(text: string, name = 'state_layout'): StateLayout {
  const layout = stateLayouts.find((known) => known === text.trim().toLowerCase());
  if (layout === undefined)
    throw new RequestError(
      `${name} is ${quoted(text)}; give ${stateLayouts.join(' or ')}: [key dimension, value dimension] or the reverse`,
    );
  return layout;
}

/** The normalisation of q and k as text: an ε, true for 1e-6, or none. @throws RequestError for other text */
export function parseNormalisation(text: string, name = 'normalisation'): number | null {
  const word = text.trim().toLowerCase();
  if (['none', 'null', ''].includes(word)) return null;
  if (['true', 'false'].includes(word)) return parseBoolean(word, name) ? usualEpsilon : null;
  const epsilon = Number(word);
  if (!(epsilon > 0 && epsilon <= 1))
    throw new RequestError(
      `${name} is ${quoted(text)}; give the epsilon of q/√(Σq² + epsilon), true for ${usualEpsilon}, or none`,
    );
  return epsilon;
}

/** The base of decays of which gates are exponents, as text: 2, or null for e. @throws RequestError for other text */
function parseGateBase(text: string, name: string): 2 | null {
  const word = text.trim().toLowerCase();
  if (word !== '2' && word !== 'e')
    throw new RequestError(`${name} is ${quoted(text)}; give 2 or e, of which gates are exponents`);
  return word === '2' ? 2 : null;
}

/** Names of the note of a normalisation: ours, and those of flash-linear-attention's arguments. */
const normalisationNotes = ['normalisation', 'use_qk_l2norm', 'use_qk_l2norm_in_kernel'] as const;

/** The note of a file under the first of some keys that it has; undefined if it has none. */
export function noted<T>(
  file: TensorFile,
  settings: RecurrentSettings,
  keys: readonly string[],
  parse: (text: string, name: string) => T,
): T | undefined {
  const notes = keptNotes(file, settings);
  const key = keys.find((one) => Object.hasOwn(notes, one));
  return key === undefined
    ? undefined
    : parse(notes[key], `${printable(file.path)}: metadata ${key}`);
}

/**
 * The family of linear attention that a file is of, from the settings, else from its metadata; null for softmax attention.
 * @throws RequestError for a family that is not known
 */
export function recurrentFamily(
  file: TensorFile,
  settings: Pick<RecurrentSettings, 'family' | 'ignored'>,
): RecurrentFamily | null {
  return settings.family ?? noted(file, settings, ['family'], parseFamily) ?? null;
}

/** The settings that a reading of tensors needs, all known. */
export interface SettledRecurrence {
  readonly scale: number | undefined;
  readonly normalisation: number | null;
  readonly stateLayout: StateLayout;
  /** 2 where gates are exponents of 2. */
  readonly gateBase: 2 | null;
  /** Whether `cu_seqlens` is a note of the file, and its numbers. */
  readonly notedSequences: readonly number[] | undefined;
}

/** Ends of packed sequences as text, `0,37,101` with or without brackets. */
function parseSequences(text: string, name: string): readonly number[] {
  const parts = text
    .trim()
    .replace(/^\[(.*)\]$/s, '$1')
    .split(',')
    .map((part) => (part.trim() === '' ? NaN : Number(part)));
  if (!parts.every((end) => Number.isSafeInteger(end)))
    throw new RequestError(
      `${name} is ${quoted(text)}; give whole numbers from 0 to the number of tokens, as in 0,37,101`,
    );
  return parts;
}

/**
 * The given settings, completed by those that the file notes.
 * @throws RequestError for notes that do not parse
 */
export function settledRecurrence(
  file: TensorFile,
  settings: RecurrentSettings,
  family: RecurrentFamily,
): SettledRecurrence {
  const { scale, normalisation, stateLayout } = settings;
  const usualLayout = family === 'mamba2' ? 'vk' : 'kv';
  return {
    scale: scale ?? noted(file, settings, ['scale'], parseScale),
    normalisation:
      normalisation !== undefined
        ? normalisation
        : (noted(file, settings, normalisationNotes, parseNormalisation) ?? null),
    stateLayout:
      stateLayout ?? noted(file, settings, ['state_layout'], parseStateLayout) ?? usualLayout,
    gateBase: noted(file, settings, ['gate_base'], parseGateBase) ?? null,
    notedSequences: noted(file, settings, ['cu_seqlens'], parseSequences),
  };
}
