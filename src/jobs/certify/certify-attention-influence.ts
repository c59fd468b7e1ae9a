import {
  findForbiddenReach,
  type GuardedOutput,
  type OutputReach,
} from '../../meaning/certify/index.js';
import { InfluenceDomain } from '../../meaning/domains/index.js';
import type { TracedInput } from '../../meaning/record/index.js';
import { problemMask, problemShape, type Problem, type ProblemShape } from '../../problem/index.js';
import type { InputPlaces, InputRole } from '../launch/contract-places.js';
import type { ContractOutput } from '../launch/contract-output.js';
import type { FollowedRun } from './followed-run.js';
import { labelsBeside } from './labels-beside.js';
import type { ToldAttention } from './told-contract.js';

/** Labels of inputs: rows of Q, then those of K, then those of V, each over [batch, heads, rows]; behind them the tensors of the launch. */
interface RowLabels {
  readonly first: Readonly<Record<InputRole, number>>;
  readonly firstTensor: number;
}

function rowLabels({ batch, heads, kvHeads, queries, keys }: ProblemShape): RowLabels {
  const [ofQueries, ofKeys] = [batch * heads * queries, batch * kvHeads * keys];
  const first = { q: 0, k: ofQueries, v: ofQueries + ofKeys };
  return { first, firstTensor: ofQueries + 2 * ofKeys };
}

/** Labels of the elements of an input that are rows of the problem, by the elements. */
function labelsByElement(
  { first }: RowLabels,
  placed: readonly InputPlaces[],
  { qkDim, vDim }: ProblemShape,
): ReadonlyMap<number, number> {
  const labels = new Map<number, number>();
  for (const { role, places } of placed)
    places.forEach((place, i) => {
      const row = Math.floor(i / (role === 'v' ? vDim : qkDim));
      // Where keys are values as well, their label is the key's.
      if (!labels.has(place)) labels.set(place, first[role] + row);
    });
  return labels;
}

/** The labels of the elements of each input that are rows of the problem. */
function labelsOfInputs(
  labels: RowLabels,
  inputs: readonly TracedInput[],
  placed: readonly InputPlaces[],
  shape: ProblemShape,
): readonly ReadonlyMap<number, number>[] {
  return inputs.map(({ tensor }) =>
    labelsByElement(
      labels,
      placed.filter((one) => one.tensor === tensor),
      shape,
    ),
  );
}

/** The labels of rows that no element has: of values that are keys as well, of heads in one place, and of inputs that are not followed. */
function absentLabels(
  { firstTensor }: RowLabels,
  known: readonly ReadonlyMap<number, number>[],
): readonly number[] {
  const present = new Set(known.flatMap((labels) => [...new Set(labels.values())]));
  return Array.from({ length: firstTensor }, (_, label) => label).filter(
    (label) => !present.has(label),
  );
}

/** The name of a label: `key 7 of head 1`, with the batch entry where there are several. */
function labelNames(
  { first, firstTensor }: RowLabels,
  inputs: readonly TracedInput[],
  { batch, heads, kvHeads, queries, keys }: ProblemShape,
): (label: number) => string {
  return (label) => {
    if (label >= firstTensor) return `${inputs[label - firstTensor].tensor} beside the problem`;
    const role = label < first.k ? 'q' : label < first.v ? 'k' : 'v';
    const [what, rows, ofHeads] = {
      q: ['query', queries, heads] as const,
      k: ['key', keys, kvHeads] as const,
      v: ['value', keys, kvHeads] as const,
    }[role];
    const index = label - first[role];
    const head = Math.floor(index / rows);
    const ofHead = ofHeads === 1 ? '' : ` of head ${head % ofHeads}`;
    const ofBatch = batch === 1 ? '' : ` in batch entry ${Math.floor(head / ofHeads)}`;
    return `${what} ${index % rows}${ofHead}${ofBatch}`;
  };
}

/** Sets of consecutive labels; those that begin at one label are made one from another. */
class LabelRanges {
  readonly #sets: InfluenceDomain['sets'];
  readonly #chains = new Map<number, number[]>();

  constructor({ sets }: InfluenceDomain) {
    this.#sets = sets;
  }

  /** The labels from one on, so many. */
  of(first: number, count: number): number {
    let chain = this.#chains.get(first);
    if (chain === undefined) this.#chains.set(first, (chain = [this.#sets.of([])]));
    for (let last = chain.length; last <= count; last++)
      chain.push(this.#sets.union(chain[last - 1], this.#sets.single(first + last - 1)));
    return chain[count];
  }
}

/** The labels of rows, those that may reach all, and the set of those that no element of an input has. */
interface GuardedRows {
  readonly labels: RowLabels;
  readonly beside: readonly number[];
  readonly absent: number;
}

/** Outputs that have a row for each query. */
const rowQuantities: readonly string[] = ['out', 'lse'];

/**
 * Which quantities a row of an output depends on, whatever the numbers are, where it sees so many keys: with a scale of 0 on no score,
 * and O of a single key is its value. Which values dropout drops is not asked.
 */
function needsOf({ scale, sink, dropout }: Problem, name: string, keys: number) {
  const isSettled =
    scale === 0 || keys === 0 || (name === 'out' && keys === 1 && sink === undefined);
  return { scores: !isSettled, values: name === 'out' && dropout === undefined };
}

/** An output in rows of the problem, and what may and must reach them: its query, the keys that it sees and, of O, their values. */
function guardOutput(
  { outputs }: FollowedRun,
  problem: Problem,
  { name, tensor, elementOf }: ContractOutput,
  rows: GuardedRows,
  domain: InfluenceDomain,
): GuardedOutput | null {
  const known = outputs.find((output) => output.tensor === tensor);
  if (known === undefined) return null;
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, vDim } = shape;
  const rowLength = name === 'out' ? vDim : 1;
  const mask = problemMask(problem, shape);
  const { first } = rows.labels;
  const values = Uint32Array.from({ length: batch * heads * queries * rowLength }, (_, i) => {
    const [row, column] = [Math.floor(i / rowLength), i % rowLength];
    const head = Math.floor(row / queries);
    return known.values[elementOf(Math.floor(head / heads), head % heads, row % queries, column)];
  });
  const ranges = new LabelRanges(domain);
  const { sets } = domain;
  const beside = sets.of(rows.beside);
  const seenBy = (row: number) => mask.ranges(Math.floor(row / queries), row % queries);
  const labelsOf = (row: number, roles: readonly InputRole[]) => {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let set: number = roles.includes('q') ? sets.single(first.q + row) : sets.of([]);
    for (const { begin, end } of seenBy(row))
      for (const role of roles)
        if (role !== 'q')
          set = sets.union(set, ranges.of(first[role] + kvHead * keys + begin, end - begin));
    return set;
  };
  const mayReach = (row: number) =>
    sets.union(beside, labelsOf(row, name === 'out' ? ['q', 'k', 'v'] : ['q', 'k']));
  const mustReach = (row: number) => {
    const seen = seenBy(row).reduce((sum, { begin, end }) => sum + end - begin, 0);
    const { scores, values: ofValues } = needsOf(problem, name, seen);
    const set = labelsOf(row, [
      ...(scores ? (['q', 'k'] as const) : []),
      ...(ofValues ? (['v'] as const) : []),
    ]);
    return sets.difference(set, rows.absent);
  };
  return { name, values, rowLength, mayReach, mustReach };
}

/**
 * What reaches O and the LSE of a run that must not: keys and values that a row does not see, other queries, elements of Q, K and V
 * that the problem does not have, and what the outputs held before.
 */
export function certifyAttentionInfluence(
  run: FollowedRun,
  { contract, places }: ToldAttention,
): readonly OutputReach[] {
  const { problem } = contract;
  const guarded = contract.outputs.filter(({ name }) => rowQuantities.includes(name));
  if (guarded.length === 0) return [];
  const shape = problemShape(problem);
  const labels = rowLabels(shape);
  const { trace, inputs } = run.recorder;
  const known = labelsOfInputs(labels, inputs, places, shape);
  const domain = new InfluenceDomain(
    trace,
    (input, element) => known[input].get(element) ?? labels.firstTensor + input,
  );
  domain.extend();
  const absent = domain.sets.of(absentLabels(labels, known));
  const ofContract = [...places, ...contract.outputs].map(({ tensor }) => tensor);
  const rows = { labels, beside: labelsBeside(run, ofContract, labels.firstTensor), absent };
  const outputs = guarded.flatMap((output) => {
    const guard = guardOutput(run, problem, output, rows, domain);
    return guard === null ? [] : [guard];
  });
  return findForbiddenReach(domain, outputs, labelNames(labels, inputs, shape));
}
