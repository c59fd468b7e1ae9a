import { RequestError } from '../../request-error.js';
import { nearestName, plainText } from '../../words/index.js';
import { violationOf } from './json-text.js';
import type { Checks } from './launch-checks.js';

/** A view of a flat buffer, in elements of the buffer. */
export interface TensorView {
  /** The tensor of the launch. */
  readonly tensor: string;
  readonly shape: readonly number[];
  /** One for each size; null for row-major order without gaps. */
  readonly strides: readonly number[] | null;
  readonly offset: number;
  /** The format of the elements, where their dtype does not tell it; null otherwise. */
  readonly format: string | null;
}

/** What a launch is to compute: softmax attention, or a recurrence of linear attention. */
export type ContractKind = 'attention' | 'recurrent';

/** The tensors that a contract may have, by its kind: inputs and outputs. */
export type ContractNames = Readonly<Record<ContractKind, readonly string[]>>;

/** What the flat buffers of a launch are: the problem that it solves, as the launch file says it. */
export interface ContractFile {
  readonly kind: ContractKind;
  /** Settings in the words of the metadata of problem files, by their names there. */
  readonly notes: ReadonlyMap<string, string>;
  /** Inputs and outputs, by their names in problem files. */
  readonly views: ReadonlyMap<string, TensorView>;
}

/** The kinds of contracts. */
const kinds = ['attention', 'recurrent'] as const satisfies readonly ContractKind[];

/** The settings of a problem, of attention beside factors of Q, K and V. */
const settings: Readonly<Record<ContractKind, readonly string[]>> = {
  attention: [
    ...['scale', 'causal', 'window', 'softcap', 'prefix', 'dropout_p', 'block_q', 'block_k'],
    ...['block_size', 'kv_index_of', 'v_dim'],
    ...['lse_sink', 'kv_layout', 'q_descale_block', 'k_descale_block', 'v_descale_block'],
  ],
  recurrent: ['family', 'scale', 'qk_norm_epsilon', 'gate_base'],
};

/**
 * Refuses what is neither a setting nor a tensor.
 * @param names the tensors that a contract of this kind may have
 */
function checkNames(
  members: readonly string[],
  kind: ContractKind,
  names: readonly string[],
): void {
  const known = ['kind', ...settings[kind], ...names];
  const unknown = members.find((member) => !known.includes(member));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, known);
  throw new RequestError(
    `has no member "${plainText(unknown.slice(0, 80))}"; ` +
      (nearest === null
        ? `leave it out, or give one of ${names.join(', ')}`
        : `did you mean "${nearest}"?`),
  );
}

/**
 * A contract from its JSON.
 *
 * @param names the tensors that it may have
 * @throws RequestError with one line, without the file's name
 */
export function readContract(
  value: unknown,
  { contract: attention, recurrentContract: recurrent }: Checks,
  names: ContractNames,
): ContractFile {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject) throw new RequestError('must be object');
  const { kind: given } = value as Readonly<Record<string, unknown>>;
  const kind = kinds.find((known) => known === given);
  if (kind === undefined)
    throw new RequestError(
      `has the kind ${plainText(String(JSON.stringify(given)).slice(0, 80))}; give ${kinds.join(' or ')}`,
    );
  checkNames(Object.keys(value), kind, names[kind]);
  const check = { attention, recurrent }[kind];
  if (!check(value)) throw new RequestError(violationOf(check.errors, 'the object'));
  const members = Object.entries(value as Readonly<Record<string, unknown>>);
  const isView = (member: unknown): member is TensorView =>
    typeof member === 'object' && !Array.isArray(member);
  const notes = members
    .filter(([name, member]) => name !== 'kind' && !isView(member))
    .map(([name, member]) => [name, String(member)] as const);
  const views = members.flatMap(([name, member]): (readonly [string, TensorView])[] => {
    if (!isView(member)) return [];
    const { tensor, shape, strides = null, offset = 0, format = null } = member;
    return [[name, { tensor, shape, strides, offset, format }]];
  });
  return { kind, notes: new Map(notes), views: new Map(views) };
}
