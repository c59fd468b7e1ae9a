import type { EmulatedNames } from '../../kernels/index.js';

/** The runs that show each technique alone, as indices into `choices`. */
export interface SinglePlan {
  readonly choices: readonly EmulatedNames[];
  /** Every technique exact, and every one emulated. */
  readonly none: number;
  readonly all: number;
  /** For each technique the run in which it alone is emulated. */
  readonly alone: Readonly<Record<string, number>>;
}

/** Which runs of a kernel tell what of its techniques. */
export interface RunPlan extends SinglePlan {
  /** In the order in which they act. */
  readonly techniques: readonly string[];
  /** For each technique the run in which it alone is exact. */
  readonly without: Readonly<Record<string, number>>;
  /** The latter with the output left unrounded as well. */
  readonly withoutUnrounded: Readonly<Record<string, number>>;
  /** For each technique the run in which it and all before it are emulated. */
  readonly upTo: Readonly<Record<string, number>>;
}

/** Runs, equal ones only once. */
function createRunList() {
  const choices: EmulatedNames[] = [];
  const indices = new Map<string, number>();
  return {
    choices,
    indexOf: (names: readonly string[]): number => {
      const key = names.join();
      const index = indices.get(key) ?? choices.push(new Set(names)) - 1;
      indices.set(key, index);
      return index;
    },
  };
}

function byTechnique(
  techniques: readonly string[],
  value: (technique: string) => number,
): Record<string, number> {
  return Object.fromEntries(techniques.map((name) => [name, value(name)]));
}

/** The runs that show each technique alone, and all and none of them. */
export function planSingleRuns(techniques: readonly string[]): SinglePlan {
  const { choices, indexOf } = createRunList();
  return {
    choices,
    none: indexOf([]),
    all: indexOf(techniques),
    alone: byTechnique(techniques, (technique) => indexOf([technique])),
  };
}

/** The runs of an attribution. */
export function planRuns(techniques: readonly string[]): RunPlan {
  const { choices, indexOf } = createRunList();
  const left = (...names: readonly string[]): number =>
    indexOf(techniques.filter((name) => !names.includes(name)));
  return {
    techniques,
    choices,
    none: indexOf([]),
    all: indexOf(techniques),
    alone: byTechnique(techniques, (technique) => indexOf([technique])),
    without: byTechnique(techniques, (technique) => left(technique)),
    withoutUnrounded: byTechnique(techniques, (technique) => left(technique, 'output-round')),
    upTo: byTechnique(techniques, (technique) =>
      indexOf(techniques.slice(0, techniques.indexOf(technique) + 1)),
    ),
  };
}
