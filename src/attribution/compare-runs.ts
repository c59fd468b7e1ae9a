import type { AttributedKernel, EmulatedNames } from '../../kernels/index.js';
import { createMatchMeter, type MatchMeasure } from './match-meter.js';
import { createRunClasses } from './run-classes.js';
import { roundedTo, type UnknownOutput } from './unknown-output.js';

/** What runs make of some rows, next to the unknown output. */
export interface RunComparison {
  /** For each run. */
  readonly measures: readonly MatchMeasure[];
  /** Runs with the same results. */
  readonly classes: readonly (readonly number[])[];
  readonly rows: number;
  /** How many elements are equal to the unknown one in one of two runs only. */
  readonly discordant: (a: number, b: number) => number;
}

/** For each element whether it is equal to the unknown one: 1, or 0. */
function equalities(unknown: Float64Array, first: number, out: Float64Array): Uint8Array {
  return Uint8Array.from(out, (x, i) => (Object.is(x, unknown[first + i]) ? 1 : 0));
}

/**
 * Runs pieces of a kernel under choices of emulated techniques and compares, all in the formats of the
 * unknown output and LSE.
 */
export function compareRuns(
  unknown: UnknownOutput,
  kernel: AttributedKernel,
  choices: readonly EmulatedNames[],
  pieces: readonly number[],
): RunComparison {
  const meters = choices.map(() => createMatchMeter(unknown));
  const classes = createRunClasses(choices.length);
  const isEqual = choices.map((): Uint8Array[] => []);
  const run = kernel.prepareRuns(choices);
  let rows = 0;
  for (const piece of pieces) {
    const { firstRow, rows: count, outputs, lse } = run(piece);
    rows += count;
    const results = outputs.map((out, i) => {
      const rounded = roundedTo(unknown.out.format, out);
      const lses = unknown.lse === null ? [] : [roundedTo(unknown.lse.format, lse[i])];
      meters[i].add(firstRow, rounded, lses[0] ?? lse[i]);
      isEqual[i].push(equalities(unknown.out.values, firstRow * kernel.shape.vDim, rounded));
      return [rounded, ...lses];
    });
    classes.add(results);
  }
  return {
    measures: meters.map((meter) => meter.measure()),
    classes: classes.classes(),
    rows,
    discordant: (a, b) =>
      isEqual[a].reduce(
        (sum, flags, piece) =>
          sum + flags.reduce((count, flag, i) => count + (flag ^ isEqual[b][piece][i]), 0),
        0,
      ),
  };
}
