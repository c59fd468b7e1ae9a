import {
  findForbiddenReach,
  type GuardedOutput,
  type OutputReach,
} from '../../meaning/certify/index.js';
import { InfluenceDomain } from '../../meaning/domains/index.js';
import type { TracedInput } from '../../meaning/record/index.js';
import { recurrentShape, type RecurrentProblem, type RecurrentShape } from '../../problem/index.js';
import type { ContractOutput } from '../launch/contract-output.js';
import type {
  RecurrentContract,
  RecurrentPlaces,
  RecurrentRole,
} from '../launch/recurrent-contract.js';
import type { FollowedRun } from './followed-run.js';
import { labelsBeside } from './labels-beside.js';

/** What a row of an input is called. */
const rowNames: Readonly<Record<RecurrentRole, string>> = {
  q: 'query',
  k: 'key',
  v: 'value',
  g: 'gate',
  beta: 'write strength',
  A_log: 'A_log',
  a: 'a',
  dt_bias: 'dt_bias',
  b: 'b',
  g_gamma: 'g_gamma',
  initial_state: 'initial state',
};

/** Labels of inputs: rows of each, of a token and head or of a sequence and head; behind them the tensors of the launch. */
interface RowLabels {
  /** By input of the launch, the labels of elements that are the problem's. */
  readonly ofElements: readonly ReadonlyMap<number, number>[];
  /** The labels of a row's elements: another row's where both lie in one place. */
  readonly of: (role: RecurrentRole, row: number) => readonly number[];
  readonly nameOf: (label: number) => string;
  readonly firstTensor: number;
}

/** What an input has a row of each head for, and how many there are; null for inputs of heads alone. */
function groupsOf(
  role: RecurrentRole,
  sequences: number,
  tokens: number,
): readonly [what: string | null, count: number] {
  if (role === 'initial_state') return ['sequence', sequences];
  return ['A_log', 'dt_bias', 'g_gamma'].includes(role) ? [null, 1] : ['token', tokens];
}

function labelRows(
  { places }: RecurrentContract,
  { keyHeads, valueHeads, batch, tokens, sequences }: RecurrentShape,
  inputs: readonly TracedInput[],
): RowLabels {
  const ofElements = inputs.map(() => new Map<number, number>());
  const sets = new Map<RecurrentRole, readonly (readonly number[])[]>();
  const names: string[] = [];
  const add = ({ role, tensor, places: elements }: RecurrentPlaces) => {
    const heads = role === 'q' || role === 'k' ? keyHeads : valueHeads;
    const [what, count] = groupsOf(role, sequences.length, batch * tokens);
    const rows = heads * count;
    const first = names.length;
    for (let row = 0; row < rows; row++) {
      const of = what === null ? '' : `${what} ${Math.floor(row / heads)}, `;
      names.push(`${rowNames[role]} of ${of}head ${row % heads}`);
    }
    const known = ofElements[inputs.findIndex((input) => input.tensor === tensor)];
    // Whole numbers have no values that are followed.
    if (known === undefined) return;
    const length = elements.length / Math.max(1, rows);
    const labels = Array.from({ length: rows }, () => new Set<number>());
    elements.forEach((element, i) => {
      const row = Math.floor(i / length);
      if (!known.has(element)) known.set(element, first + row);
      labels[row].add(known.get(element)!);
    });
    sets.set(
      role,
      labels.map((set) => [...set]),
    );
  };
  places.forEach(add);
  return {
    ofElements,
    of: (role, row) => sets.get(role)?.[row] ?? [],
    nameOf: (label) => names[label] ?? `${inputs[label - names.length].tensor} beside the problem`,
    firstTensor: names.length,
  };
}

/** Sets of labels that may and that must reach a token's output of a head, or a state. */
interface Reach {
  readonly may: number;
  readonly must: number;
}

/** What reaches the outputs of all tokens, by [token, head], and the states, by [sequence, head]. */
interface Reaches {
  readonly outputs: readonly Reach[];
  readonly states: readonly Reach[];
}

function reachesOf(
  { initialState, scale }: RecurrentProblem,
  { keyHeads, valueHeads, batch, tokens, sequences }: RecurrentShape,
  labels: RowLabels,
  { sets }: InfluenceDomain,
): Reaches {
  const none = sets.of([]);
  const outputs: Reach[] = Array.from({ length: batch * tokens * valueHeads }, () => ({
    may: none,
    must: none,
  }));
  const withRows = (set: number, roles: readonly RecurrentRole[], row: number) =>
    roles.reduce((all, role) => sets.union(all, sets.of(labels.of(role, row))), set);
  const withGates = (set: number, row: number, head: number) =>
    withRows(withRows(set, ['g', 'a'], row), ['A_log', 'dt_bias', 'g_gamma'], head);
  const states = sequences.flatMap(({ first, end }, sequence) =>
    Array.from({ length: valueHeads }, (_, head): Reach => {
      const begun = withRows(none, ['initial_state'], sequence * valueHeads + head);
      let [may, must] = [begun, begun];
      for (let token = first; token < end; token++) {
        const at = token * valueHeads + head;
        const ofKey = token * keyHeads + Math.floor((head * keyHeads) / valueHeads);
        // A state of zeros need not decay.
        const hasState = token > first || initialState !== undefined;
        may = withRows(withRows(may, ['k'], ofKey), ['v', 'beta', 'b'], at);
        must = withRows(withRows(must, ['k'], ofKey), ['v', 'beta', 'b'], at);
        may = withGates(may, at, head);
        if (hasState) must = withGates(must, at, head);
        outputs[at] = {
          may: withRows(may, ['q'], ofKey),
          must: scale === 0 ? none : withRows(must, ['q'], ofKey),
        };
      }
      return { may, must };
    }),
  );
  return { outputs, states };
}

/** An output of a run in rows: of `out` by [token, head], of states by [sequence, head]. */
function guardOutput(
  { outputs }: FollowedRun,
  { name, tensor, shape, elementOf }: ContractOutput,
  reaches: Reaches,
  beside: number,
  { sets }: InfluenceDomain,
): GuardedOutput | null {
  const known = outputs.find((output) => output.tensor === tensor);
  if (known === undefined) return null;
  const [batch, heads, rows, columns] = shape;
  const isOut = name === 'out';
  const rowLength = isOut ? columns : rows * columns;
  const values = Uint32Array.from({ length: batch * heads * rows * columns }, (_, i) => {
    const [at, column] = [Math.floor(i / columns), i % columns];
    if (!isOut)
      return known.values[
        elementOf(Math.floor(at / rows / heads), Math.floor(at / rows) % heads, at % rows, column)
      ];
    const token = Math.floor(at / heads);
    return known.values[elementOf(Math.floor(token / rows), at % heads, token % rows, column)];
  });
  const of = isOut ? reaches.outputs : reaches.states;
  return {
    name,
    values,
    rowLength,
    mayReach: (row) => sets.union(beside, of[row].may),
    mustReach: (row) => of[row].must,
  };
}

/**
 * What reaches the output and the final state of a recurrence that must not: later tokens, other heads and sequences, elements that the
 * problem does not have, and what the outputs held before; and what must reach them and does not.
 */
export function certifyRecurrentInfluence(
  run: FollowedRun,
  contract: RecurrentContract,
): readonly OutputReach[] {
  const { problem, places, outputs } = contract;
  const shape = recurrentShape(problem);
  const { trace, inputs } = run.recorder;
  const labels = labelRows(contract, shape, inputs);
  const domain = new InfluenceDomain(
    trace,
    (input, element) => labels.ofElements[input].get(element) ?? labels.firstTensor + input,
  );
  domain.extend();
  const ofContract = [...places, ...outputs].map(({ tensor }) => tensor);
  const beside = domain.sets.of(labelsBeside(run, ofContract, labels.firstTensor));
  const reaches = reachesOf(problem, shape, labels, domain);
  const guarded = outputs.flatMap((output) => {
    const guard = guardOutput(run, output, reaches, beside, domain);
    return guard === null ? [] : [guard];
  });
  return findForbiddenReach(domain, guarded, labels.nameOf);
}
