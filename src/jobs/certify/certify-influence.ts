import {
  findForbiddenReach,
  type GuardedOutput,
  type OutputReach,
} from '../../meaning/certify/index.js';
import { InfluenceDomain } from '../../meaning/domains/index.js';
import type { TracedInput } from '../../meaning/record/index.js';
import { problemMask, problemShape, type Problem, type ProblemShape } from '../../problem/index.js';
import type { InputPlaces, InputRole } from '../launch/contract-places.js';
import type { ContractOutput } from '../launch/contract-of-launch.js';
import type { FollowedRun } from './followed-run.js';
import type { ToldRun, ToldLaunch } from './told-contract.js';

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

/** The label of each element of the inputs. */
function labelOfElements(
  labels: RowLabels,
  inputs: readonly TracedInput[],
  placed: readonly InputPlaces[],
  shape: ProblemShape,
): (input: number, element: number) => number {
  const known = inputs.map(({ tensor }) =>
    labelsByElement(
      labels,
      placed.filter((one) => one.tensor === tensor),
      shape,
    ),
  );
  return (input, element) => known[input].get(element) ?? labels.firstTensor + input;
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

/** Outputs that have a row for each query. */
const rowQuantities: readonly string[] = ['out', 'lse'];

/** An output in rows of the problem, and what may reach them: its query, the keys that it sees and, of O, their values. */
function guardOutput(
  { outputs }: FollowedRun,
  problem: Problem,
  { name, tensor, elementOf }: ContractOutput,
  rows: { readonly labels: RowLabels; readonly beside: readonly number[] },
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
  const mayReach = (row: number) => {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let set = sets.union(beside, sets.single(first.q + row));
    for (const { begin, end } of mask.ranges(head, row % queries))
      for (const role of name === 'out' ? (['k', 'v'] as const) : (['k'] as const))
        set = sets.union(set, ranges.of(first[role] + kvHead * keys + begin, end - begin));
    return set;
  };
  return { name, values, rowLength, mayReach };
}

/** The tensors of a launch that are neither rows of the problem nor outputs, as labels: whatever they are, they may reach all. */
function labelsBeside(
  { recorder, result }: FollowedRun,
  { contract, places }: ToldLaunch,
  { firstTensor }: RowLabels,
): readonly number[] {
  const guarded = new Set([
    ...places.map(({ tensor }) => tensor),
    ...contract.outputs.map(({ tensor }) => tensor),
    ...result.outputs.map(({ name }) => name),
  ]);
  return recorder.inputs.flatMap(({ tensor }, input) =>
    guarded.has(tensor) ? [] : [firstTensor + input],
  );
}

/**
 * What reaches O and the LSE of a run that must not: keys and values that a row does not see, other queries, elements of Q, K and V
 * that the problem does not have, and what the outputs held before.
 *
 * @returns null where nothing says what the tensors are
 */
export function certifyInfluence({ run, told }: ToldRun): readonly OutputReach[] | null {
  if (told === null) return null;
  const { contract, places } = told;
  const { problem } = contract;
  const guarded = contract.outputs.filter(({ name }) => rowQuantities.includes(name));
  if (guarded.length === 0) return [];
  const shape = problemShape(problem);
  const labels = rowLabels(shape);
  const { trace, inputs } = run.recorder;
  const domain = new InfluenceDomain(trace, labelOfElements(labels, inputs, places, shape));
  domain.extend();
  const rows = { labels, beside: labelsBeside(run, told, labels) };
  const outputs = guarded.flatMap((output) => {
    const known = guardOutput(run, problem, output, rows, domain);
    return known === null ? [] : [known];
  });
  return findForbiddenReach(domain, outputs, labelNames(labels, inputs, shape));
}
