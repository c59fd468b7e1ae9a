import { techniques, type EmulatedTechniques, type Technique } from '../../kernels/index.js';

/** Which runs of the kernel tell what of its techniques, as indices into `choices`. */
export interface RunPlan {
  readonly choices: readonly EmulatedTechniques[];
  /** Every technique exact, and every one emulated. */
  readonly none: number;
  readonly all: number;
  /** For each technique the runs in which it alone is emulated, and in which it alone is exact. */
  readonly alone: Readonly<Record<Technique, number>>;
  readonly without: Readonly<Record<Technique, number>>;
  /** The latter with the output left unrounded as well. */
  readonly withoutUnrounded: Readonly<Record<Technique, number>>;
  /** For each technique the run in which it and all before it are emulated. */
  readonly upTo: Readonly<Record<Technique, number>>;
}

function byTechnique(value: (technique: Technique) => number): Record<Technique, number> {
  return Object.fromEntries(techniques.map((name) => [name, value(name)])) as Record<
    Technique,
    number
  >;
}

/** The runs of an attribution, equal ones only once. */
export function planRuns(): RunPlan {
  const choices: EmulatedTechniques[] = [];
  const indices = new Map<string, number>();
  const runOf = (names: readonly Technique[]): number => {
    const key = names.join();
    const known = indices.get(key);
    if (known !== undefined) return known;
    indices.set(key, choices.length);
    return choices.push(new Set(names)) - 1;
  };
  return {
    choices,
    none: runOf([]),
    all: runOf(techniques),
    alone: byTechnique((technique) => runOf([technique])),
    without: byTechnique((technique) => runOf(techniques.filter((name) => name !== technique))),
    withoutUnrounded: byTechnique((technique) =>
      runOf(techniques.filter((name) => name !== technique && name !== 'output-round')),
    ),
    upTo: byTechnique((technique) => runOf(techniques.slice(0, techniques.indexOf(technique) + 1))),
  };
}
