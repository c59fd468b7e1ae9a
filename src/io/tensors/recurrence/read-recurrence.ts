import type { Tensor } from '../../../formats/index.js';
import {
  recurrentShape,
  type RecurrentFamily,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable, tensorIn } from '../messages.js';
import { refuseMisnamedSettings } from '../problem/misnamed-settings.js';
import { fileSettings, withoutIgnored } from '../problem/settings.js';
import { openTensorArgument, ownTensor } from '../problem/tensor-argument.js';
import type { TensorFile } from '../tensor-file.js';
import { arrangeRecurrent, type RecurrentArrangement, type RecurrentRows } from './arrangement.js';
import { settledRecurrence, type RecurrentSettings, type SettledRecurrence } from './settings.js';

/** Other names of tensors, those of flash-linear-attention's arguments. */
const otherNames: Readonly<Partial<Record<string, string>>> = {
  initial_state: 'h0',
  final_state: 'ht',
  dout: 'do',
  dfinal_state: 'dht',
  dinitial_state: 'dh0',
};

/** The name under which a file has a tensor, with a prefix in front of it; null if it has none. */
export function recurrentTensor(
  { entries }: Pick<TensorFile, 'entries'>,
  name: string,
  prefix = '',
): string | null {
  const names = [name, otherNames[name]].flatMap((one) =>
    one === undefined ? [] : [`${prefix}${one}`],
  );
  return names.find((one) => entries.has(one)) ?? null;
}

/** A problem of linear attention as it was read, and how its tensors lie. */
export interface ReadRecurrence {
  readonly problem: RecurrentProblem;
  readonly shape: RecurrentShape;
  readonly arrangement: RecurrentArrangement;
  /** Names of the tensors of the problem's file that were read. */
  readonly names: readonly string[];
}

/** Where an input is, as `<file>[:<tensor>]`; null for one that the problem does not have. */
function placeOfInput(file: TensorFile, name: string, named: string | undefined): string | null {
  const own = recurrentTensor(file, name);
  return named ?? (own === null ? null : `:${own}`);
}

async function readSequences(
  file: TensorFile,
  { cuSeqlens }: RecurrentSettings,
  { notedSequences }: SettledRecurrence,
): Promise<readonly number[] | undefined> {
  const place = placeOfInput(file, 'cu_seqlens', cuSeqlens);
  if (place === null) return notedSequences;
  const chosen = await openTensorArgument(place, file, 'cu_seqlens');
  try {
    const { data } = await chosen.file.readIntegers(chosen.name);
    return [...data];
  } finally {
    await chosen.close();
  }
}

/** The lie of the tensors of a file. @throws RequestError where there is no q, or none of such a rank */
function arrangementOf(
  file: TensorFile,
  settings: RecurrentSettings,
  { stateLayout }: SettledRecurrence,
): RecurrentArrangement {
  const layout = settings.layout ?? fileSettings(file, settings).layout ?? 'bshd';
  const shape = file.entries.get('q')?.shape;
  if (shape !== undefined && shape.length !== 3 && shape.length !== 4)
    throw new RequestError(
      `${tensorIn(file.path, 'q')} has shape [${shape.join(', ')}]; give it rank 4 [batch, tokens, heads, dim] or rank 3 [tokens, heads, dim]`,
    );
  return {
    headsFirst: layout === 'bhsd',
    hasBatch: shape?.length !== 3,
    valueFirst: stateLayout === 'vk',
  };
}

async function readTensors(
  file: TensorFile,
  { initialState }: RecurrentSettings,
  arrangement: RecurrentArrangement,
): Promise<Pick<RecurrentProblem, 'q' | 'k' | 'v' | 'g' | 'beta' | 'initialState'>> {
  const read = async (place: string, name: string, of: RecurrentRows): Promise<Tensor> => {
    const chosen = await openTensorArgument(place, file, name);
    try {
      return arrangeRecurrent(await chosen.file.read(chosen.name), of, arrangement);
    } finally {
      await chosen.close();
    }
  };
  const tokens = async (name: string) => read(`:${name}`, name, 'tokens');
  const state = placeOfInput(file, 'initial_state', initialState);
  return {
    q: await tokens('q'),
    k: await tokens('k'),
    v: await tokens('v'),
    ...(file.entries.has('g') && { g: await tokens('g') }),
    ...(file.entries.has('beta') && { beta: await tokens('beta') }),
    ...(state !== null && { initialState: await read(state, 'initial_state', 'states') }),
  };
}

/** The names of a problem's own tensors that reading it reads. */
function namesOf(file: TensorFile, { initialState, cuSeqlens }: RecurrentSettings): string[] {
  const places = [
    placeOfInput(file, 'initial_state', initialState),
    placeOfInput(file, 'cu_seqlens', cuSeqlens),
  ];
  const own = places.map((place) => (place === null ? null : ownTensor(place, file.beside, '')));
  return ['q', 'k', 'v', 'g', 'beta', ...own.filter((name) => name !== null)];
}

/**
 * The problem of linear attention that a file holds: tensors `q`, `k`, `v`, and of those that the family has `g` and `beta`;
 * `initial_state` and `cu_seqlens` where they are there. Tensors are [batch, tokens, heads, …] unless the layout says otherwise.
 * @throws RequestError when a tensor is missing, or shapes, elements or settings do not fit together
 */
export async function readRecurrence(
  source: TensorFile,
  family: RecurrentFamily,
  settings: RecurrentSettings,
): Promise<ReadRecurrence> {
  const file = withoutIgnored(source, settings);
  const settled = settledRecurrence(file, settings);
  const { scale, normalisation } = settled;
  refuseMisnamedSettings(file, {
    scale,
    layout: settings.layout ?? 'bshd',
    ignored: settings.ignored,
    // A recurrence sees all tokens up to its own.
    causal: true,
    window: null,
    softcap: null,
  });
  const arrangement = arrangementOf(file, settings, settled);
  const cuSeqlens = await readSequences(file, settings, settled);
  const problem: RecurrentProblem = {
    family,
    ...(await readTensors(file, settings, arrangement)),
    ...(scale !== undefined && { scale }),
    ...(cuSeqlens !== undefined && { cuSeqlens }),
    ...(normalisation !== null && { normalisation: { epsilon: normalisation } }),
  };
  try {
    const shape = recurrentShape(problem);
    return { problem, shape, arrangement, names: namesOf(file, settings) };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new RequestError(`${printable(file.path)}: ${error.message}`);
  }
}
