import type { Tensor } from '../../../formats/index.js';
import {
  recurrentShape,
  recurrentTensorName,
  withHeadGates,
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
import { gateInputNames, readGateInputs } from './gate-inputs.js';
import { endsOfSequences, mamba2Tensors, readMamba2 } from './mamba2.js';
import { refuseSoftmaxNotes } from './softmax-notes.js';
import { settledRecurrence, type RecurrentSettings, type SettledRecurrence } from './settings.js';

/** Other names of tensors, those of flash-linear-attention's arguments. */
const otherNames: Readonly<Partial<Record<string, string>>> = {
  initial_state: 'h0',
  final_state: 'ht',
  dout: 'do',
  dfinal_state: 'dht',
  dinitial_state: 'dh0',
};

/** Other names of Mamba-2's tensors: those that they have in the other families, where that is no other tensor's. */
const otherMamba2Names: Readonly<Partial<Record<string, string>>> = {
  initial_state: 'initial_state',
  final_state: 'final_state',
  dfinal_state: 'dfinal_state',
  dinitial_state: 'dinitial_state',
};

/** The name under which a file has a tensor, with a prefix in front of it; null if it has none. */
export function recurrentTensor(
  { entries }: Pick<TensorFile, 'entries'>,
  name: string,
  { family, prefix = '' }: { readonly family?: RecurrentFamily; readonly prefix?: string } = {},
): string | null {
  const others = family === 'mamba2' ? otherMamba2Names : otherNames;
  const own = family === undefined ? name : recurrentTensorName(family, name);
  const names = [own, others[name]].flatMap((one) =>
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
function placeOfInput(
  file: TensorFile,
  name: string,
  family: RecurrentFamily,
  named: string | undefined,
): string | null {
  const own = recurrentTensor(file, name, { family });
  return named ?? (own === null ? null : `:${own}`);
}

/** Whether a Mamba-2 file has the number of each token's sequence, which counts where it has no ends. */
const hasSequenceNumbers = ({ entries }: TensorFile, family: RecurrentFamily): boolean =>
  family === 'mamba2' && entries.has('seq_idx');

async function readSequences(
  file: TensorFile,
  { cuSeqlens }: RecurrentSettings,
  { notedSequences }: SettledRecurrence,
  family: RecurrentFamily,
): Promise<readonly number[] | undefined> {
  const place = placeOfInput(file, 'cu_seqlens', family, cuSeqlens);
  if (place === null && hasSequenceNumbers(file, family)) return endsOfSequences(file);
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
  query: string,
): RecurrentArrangement {
  const layout = settings.layout ?? fileSettings(file, settings).layout ?? 'bshd';
  const shape = file.entries.get(query)?.shape;
  if (shape !== undefined && shape.length !== 3 && shape.length !== 4)
    throw new RequestError(
      `${tensorIn(file.path, query)} has shape [${shape.join(', ')}]; give it rank 4 [batch, tokens, heads, dim] or rank 3 [tokens, heads, dim]`,
    );
  return {
    headsFirst: layout === 'bhsd',
    hasBatch: shape?.length !== 3,
    valueFirst: stateLayout === 'vk',
  };
}

async function readTensors(
  file: TensorFile,
  settings: RecurrentSettings,
  arrangement: RecurrentArrangement,
  family: RecurrentFamily,
): Promise<
  Omit<RecurrentProblem, 'family' | 'scale' | 'cuSeqlens' | 'normalisation' | 'gateBase'>
> {
  const read = async (place: string, name: string, of: RecurrentRows): Promise<Tensor> => {
    const chosen = await openTensorArgument(place, file, name);
    try {
      return arrangeRecurrent(await chosen.file.read(chosen.name), of, arrangement);
    } finally {
      await chosen.close();
    }
  };
  const tokens = async (name: string) => read(`:${name}`, name, 'tokens');
  const nameOf = (name: string) => recurrentTensorName(family, name);
  const state = placeOfInput(file, 'initial_state', family, settings.initialState);
  const isMamba2 = family === 'mamba2';
  const [q, k, v] = [
    await tokens(nameOf('q')),
    await tokens(nameOf('k')),
    await tokens(nameOf('v')),
  ];
  const sizes = { valueHeads: v.shape[2], keyDim: q.shape[3] };
  return {
    q,
    k,
    v,
    ...(await readGateInputs(file, family, tokens, sizes)),
    ...(isMamba2 && { mamba2: await readMamba2(file, settings, tokens) }),
    ...(!isMamba2 && file.entries.has('g') && { g: await tokens('g') }),
    ...(!isMamba2 && file.entries.has('beta') && { beta: await tokens('beta') }),
    ...(state !== null && { initialState: await read(state, 'initial_state', 'states') }),
  };
}

/** The names of a problem's own tensors that reading it reads. */
function namesOf(
  file: TensorFile,
  { initialState, cuSeqlens }: RecurrentSettings,
  family: RecurrentFamily,
): string[] {
  const ends = placeOfInput(file, 'cu_seqlens', family, cuSeqlens);
  const places = [placeOfInput(file, 'initial_state', family, initialState), ends];
  const own = places.map((place) => (place === null ? null : ownTensor(place, file.beside, '')));
  const given = own.filter((name) => name !== null);
  if (family !== 'mamba2') return ['q', 'k', 'v', 'g', 'beta', ...gateInputNames, ...given];
  const numbers = ends === null && hasSequenceNumbers(file, family) ? ['seq_idx'] : [];
  return ['C', 'B', 'x', ...mamba2Tensors, ...numbers, ...given];
}

/**
 * The problem of linear attention that a file holds: tensors `q`, `k`, `v`, and of those that the family has `g`, or `A_log`, `a` and `dt_bias`, and `beta`, or `b`;
 * `initial_state` and `cu_seqlens` where they are there; of mamba2 `C`, `B`, `x`, `dt`, `A` and, where they are there, `D`, `z`, `dt_bias`,
 * `initial_states`, `cu_seqlens` or `seq_idx`. Tensors are [batch, tokens, heads, …] unless the layout says otherwise.
 * @throws RequestError when a tensor is missing, or shapes, elements or settings do not fit together
 */
export async function readRecurrence(
  source: TensorFile,
  family: RecurrentFamily,
  settings: RecurrentSettings,
): Promise<ReadRecurrence> {
  const file = withoutIgnored(source, settings);
  refuseSoftmaxNotes(file, settings);
  const settled = settledRecurrence(file, settings, family);
  const { scale, normalisation, gateBase } = settled;
  refuseMisnamedSettings(file, {
    scale,
    layout: settings.layout ?? 'bshd',
    ignored: settings.ignored,
    // A recurrence sees all tokens up to its own.
    causal: true,
    window: null,
    softcap: null,
  });
  const query = recurrentTensorName(family, 'q');
  const arrangement = arrangementOf(file, settings, settled, query);
  const cuSeqlens = await readSequences(file, settings, settled, family);
  const given: RecurrentProblem = {
    family,
    ...(await readTensors(file, settings, arrangement, family)),
    ...(scale !== undefined && { scale }),
    ...(cuSeqlens !== undefined && { cuSeqlens }),
    ...(normalisation !== null && { normalisation: { epsilon: normalisation } }),
    ...(gateBase === 2 && { gateBase }),
  };
  try {
    const problem =
      file.entries.has('g_gamma') && family !== 'mamba2'
        ? withHeadGates(given, await file.read('g_gamma'))
        : given;
    const shape = recurrentShape(problem);
    return { problem, shape, arrangement, names: namesOf(file, settings, family) };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new RequestError(`${printable(file.path)}: ${error.message}`);
  }
}
