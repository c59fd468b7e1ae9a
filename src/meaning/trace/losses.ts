/** How often each place of the program did something. */
export type PlaceCounts = ReadonlyMap<string, number>;

function addTo(counts: Map<string, number>, place: string, count: number): void {
  counts.set(place, (counts.get(place) ?? 0) + count);
}

/** What a run lost, and what it decided by values, by places of the program. */
export class Losses {
  readonly #lost = new Map<string, number>();
  readonly #decided = new Map<string, number>();
  #where = '';

  /** Begins another launch: its places begin with a text. */
  beginLaunch(where: string): void {
    this.#where = where;
  }

  /** Counts values that are lost at a place though none of their operands was. */
  lose(site: string, count = 1): void {
    addTo(this.#lost, this.#where + site, count);
  }

  /** Counts decisions by values: comparisons, roundings to integers, tests of bits. */
  decide(site: string, count = 1): void {
    addTo(this.#decided, this.#where + site, count);
  }

  /** Values lost where their operands were not, by place, in the order of the run. */
  get lost(): PlaceCounts {
    return this.#lost;
  }

  get decided(): PlaceCounts {
    return this.#decided;
  }
}
