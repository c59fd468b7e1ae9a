import type { InstructionCounts, OperandName } from '../isa/index.js';

/** Amounts by name. */
export type Amounts = Record<string, number>;

/** Counts of one CTA's work. Bytes are counted where the instruction moves them, whatever the banks. */
export interface CtaCounters {
  /** Warp instructions by mnemonic; asynchronous ones once for the warp that issued them. */
  readonly instructions: Amounts;
  /** Floating-point operations of MMAs, two for a product and its sum, by the name of D. */
  readonly mmaFlops: Amounts;
  /** The same by the bits of A's elements, `16` or `8`, on which the tensor core's rate depends. */
  readonly mmaFlopsByOperandBits: Amounts;
  /** Bytes of shared memory read and written, by the name of the data, as `K → mma`. */
  readonly sharedBytes: Amounts;
  /** Bytes of tensor memory read and written, likewise. */
  readonly tensorBytes: Amounts;
  /** Bytes of global memory read and written, likewise. */
  readonly globalBytes: Amounts;
  /** Waits by place in the program, and those of them that were blocked. */
  readonly waits: Amounts;
  readonly blockedWaits: Amounts;
  /** Clocks spent waiting by place, in a timed run. */
  readonly waitClocks: Amounts;
  /** Clocks in which a unit worked, in a timed run. */
  readonly unitClocks: Amounts;
  /** The most columns of tensor memory and bytes of shared memory in use. */
  mostTensorColumns: number;
  mostSharedBytes: number;
}

export function createCtaCounters(): CtaCounters {
  return {
    instructions: {},
    mmaFlops: {},
    mmaFlopsByOperandBits: {},
    sharedBytes: {},
    tensorBytes: {},
    globalBytes: {},
    waits: {},
    blockedWaits: {},
    waitClocks: {},
    unitClocks: {},
    mostTensorColumns: 0,
    mostSharedBytes: 0,
  };
}

/** Adds to an amount. */
export function count(amounts: Amounts, name: OperandName, amount: number): void {
  amounts[name] = (amounts[name] ?? 0) + amount;
}

/** Adds every count of a piece of code. */
export function countInstructions(amounts: Amounts, counts: InstructionCounts): void {
  for (const name in counts) count(amounts, name, counts[name]);
}

type AmountsKey = {
  [Key in keyof CtaCounters]: CtaCounters[Key] extends Amounts ? Key : never;
}[keyof CtaCounters];

const amountsKeys = Object.entries(createCtaCounters())
  .filter(([, value]) => typeof value === 'object')
  .map(([key]) => key as AmountsKey);

function addTo(sums: Amounts, amounts: Amounts): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const sum = (sums[name] ?? 0) + amount;
    if (sum === 0) delete sums[name];
    else sums[name] = sum;
  }
}

/**
 * The counters of several CTAs together, or of one in several runs: amounts add up, and the largest
 * is taken of the most in use at a time. The sum of an empty list is that of a CTA that did nothing.
 */
export function sumOfCounters(list: readonly CtaCounters[]): CtaCounters {
  const sum = createCtaCounters();
  for (const counters of list) {
    for (const key of amountsKeys) addTo(sum[key], counters[key]);
    sum.mostTensorColumns = Math.max(sum.mostTensorColumns, counters.mostTensorColumns);
    sum.mostSharedBytes = Math.max(sum.mostSharedBytes, counters.mostSharedBytes);
  }
  return sum;
}
