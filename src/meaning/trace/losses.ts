/** How often each place of the program did something. */
export type PlaceCounts = ReadonlyMap<string, number>;

/** What a run lost, and what it decided by values, by places of the program. */
export class Losses {
  readonly #lost = new Map<string, number>();
  readonly #decided = new Map<string, number>();

  /** Counts values that are lost at a place though none of their operands was. */
  lose(site: string, count = 1): void {
    this.#lost.set(site, (this.#lost.get(site) ?? 0) + count);
  }

  /** Counts decisions by values: comparisons, roundings to integers, tests of bits. */
  decide(site: string, count = 1): void {
    this.#decided.set(site, (this.#decided.get(site) ?? 0) + count);
  }

  /** Values lost where their operands were not, by place, in the order of the run. */
  get lost(): PlaceCounts {
    return this.#lost;
  }

  get decided(): PlaceCounts {
    return this.#decided;
  }
}
