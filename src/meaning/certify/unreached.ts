import { anySet, emptySet, type InfluenceDomain } from '../domains/index.js';

/** An output of a run, and what may reach it. */
export interface GuardedOutput {
  readonly name: string;
  /** The number of each element's value, in rows. */
  readonly values: Uint32Array;
  /** Elements of a row. */
  readonly rowLength: number;
  /** The labels that may reach the elements of a row, as a set of the domain's `sets`. */
  readonly mayReach: (row: number) => number;
  /** Those that must, likewise: attention depends on them, whatever the numbers. */
  readonly mustReach: (row: number) => number;
}

/** An element, and the labels that reach it and must not, or must and do not. */
export interface ReachedElement {
  readonly element: number;
  readonly row: number;
  /** How many labels there are. */
  readonly labels: number;
  /** The first of them, by their names. */
  readonly names: readonly string[];
}

/** The elements of an output that are reached by what must not reach them, or are not by what must. */
export interface ForbiddenReach {
  readonly elements: number;
  /** How many labels reach some element, each counted once. */
  readonly labels: number;
  /** For each of some rows the element that most labels reach, the worst row first. */
  readonly worst: readonly ReachedElement[];
}

/** What reaches an output that must not, and what does not that must. */
export interface OutputReach {
  readonly name: string;
  readonly elements: number;
  /** Elements of which it is unknown what reaches them. They count nowhere else. */
  readonly unknown: number;
  readonly withWeight: ForbiddenReach;
  /** In the structure only: what matters where it makes a number of another kind, as a NaN. */
  readonly inStructure: ForbiddenReach;
  /** What must reach elements and does not, neither with weight nor in the structure. */
  readonly missed: ForbiddenReach;
}

const [mostWorst, mostNames] = [5, 8] as const;

/** Collects labels of elements. */
class Collector {
  readonly #domain: InfluenceDomain;
  readonly #nameOf: (label: number) => string;
  readonly #worst = new Map<
    number,
    { element: number; row: number; set: number; labels: number }
  >();
  #elements = 0;
  #all: number = emptySet;

  constructor(domain: InfluenceDomain, nameOf: (label: number) => string) {
    this.#domain = domain;
    this.#nameOf = nameOf;
  }

  add(element: number, row: number, set: number): void {
    if (set === emptySet) return;
    const { sets } = this.#domain;
    this.#elements++;
    this.#all = sets.union(this.#all, set);
    const labels = sets.sizeOf(set);
    if (labels > (this.#worst.get(row)?.labels ?? 0))
      this.#worst.set(row, { element, row, set, labels });
  }

  get found(): ForbiddenReach {
    const { sets } = this.#domain;
    const names = (set: number): string[] => {
      const first: string[] = [];
      for (const label of sets.labelsOf(set)) {
        if (first.length === mostNames) break;
        first.push(this.#nameOf(label));
      }
      return first;
    };
    const worst = [...this.#worst.values()].sort((x, y) => y.labels - x.labels).slice(0, mostWorst);
    return {
      elements: this.#elements,
      labels: sets.sizeOf(this.#all),
      worst: worst.map(({ element, row, set, labels }) => ({
        element,
        row,
        labels,
        names: names(set),
      })),
    };
  }
}

/**
 * For each output what must reach it and does not, and what reaches it and must not: none of it says that the run proves, on the path that it took, that the outputs do
 * not depend on these inputs (`InfluenceDomain` says what that means).
 *
 * @param domain one that has taken all values
 * @param nameOf the name of a label in what is found: `key 7`
 */
export function findForbiddenReach(
  domain: InfluenceDomain,
  outputs: readonly GuardedOutput[],
  nameOf: (label: number) => string,
): readonly OutputReach[] {
  const { sets } = domain;
  return outputs.map(({ name, values, rowLength, mayReach, mustReach }) => {
    const [withWeight, inStructure, missed] = [0, 1, 2].map(() => new Collector(domain, nameOf));
    let unknown = 0;
    let [allowed, needed]: [number, number] = [emptySet, emptySet];
    values.forEach((value, element) => {
      const row = Math.floor(element / rowLength);
      if (element % rowLength === 0) [allowed, needed] = [mayReach(row), mustReach(row)];
      const weight = domain.withWeight[value];
      const structure = domain.structureOnly(value);
      if (weight === anySet || structure === anySet) unknown++;
      else {
        withWeight.add(element, row, sets.difference(weight, allowed));
        inStructure.add(element, row, sets.difference(structure, allowed));
        missed.add(element, row, sets.difference(needed, sets.union(weight, structure)));
      }
    });
    return {
      name,
      elements: values.length,
      unknown,
      withWeight: withWeight.found,
      inStructure: inStructure.found,
      missed: missed.found,
    };
  });
}
