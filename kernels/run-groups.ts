import { RequestError } from '../src/request-error.js';

/** Runs that agree in the techniques by which they were grouped. */
export interface RunGroup<Name extends string> {
  /** Those of the grouping techniques that the runs emulate. */
  readonly emulated: ReadonlySet<Name>;
  /** Indices into the choices. */
  readonly runs: readonly number[];
}

/** All runs, in groups. */
export interface RunGroups<Name extends string> {
  readonly groups: readonly RunGroup<Name>[];
  /** Index of each run's group. */
  readonly groupOf: readonly number[];
}

/**
 * Groups runs that agree in some techniques, so that results that only these decide are computed once
 * for all of them. Groups are in the order of their first runs.
 *
 * @param choices for each run the techniques that are emulated
 * @param names the techniques to group by
 */
export function groupRuns<Name extends string>(
  choices: readonly ReadonlySet<string>[],
  names: readonly Name[],
): RunGroups<Name> {
  const groups: { emulated: Set<Name>; runs: number[] }[] = [];
  const indices = new Map<string, number>();
  const groupOf = choices.map((choice, run) => {
    const emulated = names.filter((name) => choice.has(name));
    const key = emulated.join();
    const index = indices.get(key) ?? groups.push({ emulated: new Set(emulated), runs: [] }) - 1;
    indices.set(key, index);
    groups[index].runs.push(run);
    return index;
  });
  return { groups, groupOf };
}

/** Runs on their way through a kernel: those of a group have everything in common so far. */
export interface RunStage extends RunGroups<string> {
  /** Index of the parent of each group in the stage before. */
  readonly parents: readonly number[];
}

/**
 * Groups runs at every stage of a kernel by the techniques that have acted until then.
 *
 * @param stages for each stage the techniques that act in it
 */
export function runStages<Stages extends readonly (readonly string[])[]>(
  choices: readonly ReadonlySet<string>[],
  stages: Stages,
): { readonly [Index in keyof Stages]: RunStage } {
  let names: readonly string[] = [];
  let before: readonly number[] = choices.map(() => 0);
  const grouped = stages.map((acting): RunStage => {
    names = [...names, ...acting];
    const { groups, groupOf } = groupRuns(choices, names);
    const parents = groups.map(({ runs }) => before[runs[0]]);
    before = groupOf;
    return { groups, groupOf, parents };
  });
  return grouped as { readonly [Index in keyof Stages]: RunStage };
}

/** @throws RequestError for a choice with a technique that is not among the model's. */
export function checkChoices(
  model: string,
  techniques: readonly string[],
  choices: readonly ReadonlySet<string>[],
): void {
  const unknown = choices
    .flatMap((choice) => [...choice])
    .find((name) => !techniques.includes(name));
  if (unknown !== undefined)
    throw new RequestError(
      `${model} has no technique ${JSON.stringify(unknown)} on this problem; it has ${techniques.join(', ')}`,
    );
}
