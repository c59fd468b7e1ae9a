import {
  plainRecurrentFamilies,
  recurrentQuantityShape,
  recurrentShape,
  withHeadGates,
  type GateInputs,
  type RecurrentFamily,
  type RecurrentProblem,
  type RecurrentShape,
  type Tensor,
} from '../../problem/index.js';
import { formats } from '../../formats/index.js';
import { safetensorsDtypeOf } from '../../io/index.js';
import type { ContractFile, LaunchTensor } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { listed, nearestName, plainText } from '../../words/index.js';
import { recurrentInputs, recurrentResults } from './contract-names.js';
import type { ContractOutput } from './contract-output.js';
import { placesOf, placeView, viewBytes } from './contract-views.js';
import { tensorOf } from './launch-tensors.js';
import type { GivenContract } from './open-contract.js';
import type { OpenedLaunch } from './open-launch.js';

/** An input of a recurrence whose elements have places. */
export type RecurrentRole = Exclude<(typeof recurrentInputs)[number], 'cu_seqlens'>;

/** Where the elements of an input lie in a tensor of the launch. */
export interface RecurrentPlaces {
  readonly role: RecurrentRole;
  /** The launch's tensor. */
  readonly tensor: string;
  /** Elements of it, row-major in the shape that `RecurrentProblem` has. */
  readonly places: Float64Array;
}

/** The recurrence that a launch computes, and the places of its inputs and outputs. */
export interface RecurrentContract {
  readonly kind: 'recurrent';
  readonly problem: RecurrentProblem;
  /** Rows of `out` are tokens of a batch entry, those of `final_state` key dimensions of a sequence. */
  readonly outputs: readonly ContractOutput[];
  readonly places: readonly RecurrentPlaces[];
}

/** Whole numbers of 32 or 64 bits. @throws RequestError for a tensor of another type */
function wholeNumbers({ dtype }: LaunchTensor, name: string, bytes: Uint8Array): readonly number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === 'I32')
    return Array.from({ length: bytes.length / 4 }, (_, i) => view.getInt32(4 * i, true));
  if (dtype === 'I64')
    return Array.from({ length: bytes.length / 8 }, (_, i) =>
      Number(view.getBigInt64(8 * i, true)),
    );
  throw new RequestError(`${name} has the type ${plainText(dtype)}; give it I32 or I64`);
}

/** The format of a view in the spelling of safetensors; null for that of its tensor. */
function dtypeOf(name: string, format: string | null): string | null {
  if (format === null) return null;
  if (Object.hasOwn(formats, format)) return safetensorsDtypeOf[format as keyof typeof formats];
  throw new RequestError(`${name} has the format "${plainText(format)}", which is none`);
}

function familyOf({ notes }: ContractFile): RecurrentFamily {
  const family = notes.get('family') ?? '';
  // A contract of Mamba-2 would need its inputs.
  const known = plainRecurrentFamilies;
  const found = known.find((one) => one === family);
  if (found !== undefined) return found;
  const nearest = nearestName(family, known);
  throw new RequestError(
    `has the family "${plainText(family.slice(0, 80))}"; ` +
      (nearest === null ? `give one of ${listed(known)}` : `did you mean "${nearest}"?`),
  );
}

/** A member, if there is one. */
function ifGiven<Name extends string, T>(
  name: Name,
  member: T | undefined | '',
): { readonly [Key in Name]?: T } {
  return (member === undefined || member === '' ? {} : { [name]: member }) as {
    readonly [Key in Name]?: T;
  };
}

/** What gates are made of; undefined where nothing says so. @throws RequestError for one of A_log and a alone */
function gateInputsOf(tensor: (name: string) => Tensor | undefined): GateInputs | undefined {
  const [aLog, a, dtBias] = ['A_log', 'a', 'dt_bias'].map(tensor);
  if (aLog && a) return { aLog, a, ...ifGiven('dtBias', dtBias) };
  if (!aLog && !a && !dtBias) return undefined;
  throw new RequestError(
    `has no ${aLog ? 'a' : 'A_log'}, and gates are made of A_log and a; name it`,
  );
}

function problemOf(
  { file }: GivenContract,
  tensors: ReadonlyMap<string, LaunchTensor>,
): RecurrentProblem {
  const placed = (name: string) => {
    const view = file.views.get(name);
    return view && { ...placeView(name, view, tensors), format: view.format };
  };
  const tensor = (name: string): Tensor | undefined => {
    const view = placed(name);
    if (view === undefined) return undefined;
    const dtype = dtypeOf(name, view.format) ?? view.tensor.dtype;
    return tensorOf({ name, dtype, shape: view.shape, bytes: viewBytes(view) });
  };
  const ends = placed('cu_seqlens');
  const [scale, epsilon] = ['scale', 'qk_norm_epsilon'].map((name) => file.notes.get(name));
  const problem: RecurrentProblem = {
    family: familyOf(file),
    q: tensor('q')!,
    k: tensor('k')!,
    v: tensor('v')!,
    ...ifGiven('g', tensor('g')),
    ...ifGiven('beta', tensor('beta')),
    ...ifGiven('gateInputs', gateInputsOf(tensor)),
    ...ifGiven('strengthLogits', tensor('b')),
    ...ifGiven('initialState', tensor('initial_state')),
    ...ifGiven('scale', scale && Number(scale)),
    ...ifGiven('cuSeqlens', ends && wholeNumbers(ends.tensor, 'cu_seqlens', viewBytes(ends))),
    ...ifGiven('normalisation', epsilon && { epsilon: Number(epsilon) }),
    ...(file.notes.has('gate_base') && { gateBase: 2 as const }),
  };
  const headGates = tensor('g_gamma');
  return headGates ? withHeadGates(problem, headGates) : problem;
}

/** The sizes of a result: batch entries or sequences, heads, tokens or key dimensions, columns. */
function sizesOf(
  name: (typeof recurrentResults)[number],
  { batch, tokens, valueHeads, keyDim, valueDim, sequences }: RecurrentShape,
): ContractOutput['shape'] {
  return name === 'out'
    ? [batch, valueHeads, tokens, valueDim]
    : [sequences.length, valueHeads, keyDim, valueDim];
}

function outputsOf(
  { file: contract }: GivenContract,
  { file, tensors }: OpenedLaunch,
  problem: RecurrentProblem,
): readonly ContractOutput[] {
  const shape = recurrentShape(problem);
  const written = file.outputs.map(({ name }) => name);
  const outputs = recurrentResults.flatMap((name): readonly ContractOutput[] => {
    const view = contract.views.get(name);
    if (view === undefined) return [];
    if (!written.includes(view.tensor))
      throw new RequestError(
        `${name} is a view of "${plainText(view.tensor)}", which is no output of the launch; ` +
          `name one of its outputs (${plainText(listed(written)) || 'none'}), or add it to them`,
      );
    const placed = placeView(name, view, tensors);
    const wanted = recurrentQuantityShape(name, problem, shape);
    if (String(placed.shape) !== String(wanted))
      throw new RequestError(
        `${name} has shape [${placed.shape.join(', ')}], but the problem's is [${wanted?.join(', ')}]; mend it`,
      );
    const places = placesOf(placed);
    const sizes = sizesOf(name, shape);
    const [, heads, rows, columns] = sizes;
    const rowOf = (batch: number, head: number, row: number) =>
      name === 'out' ? (batch * rows + row) * heads + head : (batch * heads + head) * rows + row;
    const elementOf: ContractOutput['elementOf'] = (batch, head, row, column) =>
      places[rowOf(batch, head, row) * columns + column];
    return [{ name, tensor: view.tensor, shape: sizes, elementOf }];
  });
  if (outputs.length > 0) return outputs;
  throw new RequestError(`names no output; give ${recurrentResults.join(' or ')}`);
}

/**
 * The contract of a recurrence from views of a launch's tensors.
 * @throws RequestError for views that do not fit the launch's tensors, and for a problem that is none
 */
export function readRecurrentContract(
  given: GivenContract,
  opened: OpenedLaunch,
): RecurrentContract {
  const { tensors } = opened;
  const problem = problemOf(given, tensors);
  const outputs = outputsOf(given, opened, problem);
  const places = recurrentInputs.flatMap((role): readonly RecurrentPlaces[] => {
    const view = given.file.views.get(role);
    if (view === undefined || role === 'cu_seqlens') return [];
    return [{ role, tensor: view.tensor, places: placesOf(placeView(role, view, tensors)) }];
  });
  return { kind: 'recurrent', problem, outputs, places };
}
