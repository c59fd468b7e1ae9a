/** One quantity that a benchmark measures. */
export interface Quantity {
  readonly name: string;
  /** Unit, as in `elements/s`; `s`, `bytes` and rates are shown with an SI prefix. */
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  /** The project's own goal for this number, in `unit`: a minimum, or a maximum where less is better. */
  readonly target?: number;
}

/** A benchmark with its data made. */
interface PreparedBenchmark {
  /** Measures once: one value per quantity, in the benchmark's order. */
  readonly measure: () => readonly number[] | Promise<readonly number[]>;
  /** Removes what `prepare` left outside the process. */
  readonly dispose?: () => Promise<void>;
}

/** A measurement as data. Benchmarks print numbers; they never pass or fail. */
export interface Benchmark {
  readonly quantities: readonly Quantity[];
  /** Number of measurements, of which the median counts; default 5. */
  readonly runs?: number;
  /** Whether a first run is as fast as others, so that no run is needed to warm up; default no. */
  readonly isWarm?: boolean;
  /** Makes the data, outside of the measured time; `quick` asks for a small amount. */
  readonly prepare: (quick: boolean) => PreparedBenchmark | Promise<PreparedBenchmark>;
}

/** Seconds that one call of the work takes. */
export function secondsOf(work: () => void): number {
  const start = performance.now();
  work();
  return (performance.now() - start) / 1000;
}

/** A benchmark of one rate: `amount` per second over one call of `work`. */
export function rateOf(amount: number, work: () => void): PreparedBenchmark {
  return { measure: () => [amount / secondsOf(work)] };
}

/** One quantity, measured. Values are in the quantity's unit. */
export interface Reading extends Quantity {
  readonly median: number;
  readonly smallest: number;
  readonly largest: number;
  readonly runs: number;
  /** Null without a target, and for a quick run, which cannot tell. */
  readonly meetsTarget: boolean | null;
}

/** The middle value of an odd number of values, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[upper] : (sorted[upper - 1] + sorted[upper]) / 2;
}

function meets({ better, target }: Quantity, value: number): boolean | null {
  if (target === undefined) return null;
  return better === 'higher' ? value >= target : value <= target;
}

function reading(quantity: Quantity, values: readonly number[], quick: boolean): Reading {
  const middle = median(values);
  return {
    ...quantity,
    median: middle,
    smallest: Math.min(...values),
    largest: Math.max(...values),
    runs: values.length,
    meetsTarget: quick ? null : meets(quantity, middle),
  };
}

const defaultRuns = 5;

/**
 * The readings of a benchmark, one per quantity: after one run to warm up, the median of its runs.
 * Quick: small data and a single run, which shows that it works and no more.
 */
export async function runBenchmark(benchmark: Benchmark, quick: boolean): Promise<Reading[]> {
  const { quantities, runs = defaultRuns, isWarm = false, prepare } = benchmark;
  const { measure, dispose } = await prepare(quick);
  try {
    if (!quick && !isWarm) await measure();
    const measured: (readonly number[])[] = [];
    for (let run = 0; run < (quick ? 1 : runs); run++) measured.push(await measure());
    return quantities.map((quantity, i) =>
      reading(
        quantity,
        measured.map((values) => values[i]),
        quick,
      ),
    );
  } finally {
    await dispose?.();
  }
}
