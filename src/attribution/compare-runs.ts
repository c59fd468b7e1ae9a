import type { AttributedKernel, EmulatedNames } from '../../kernels/index.js';
import {
  createMatchMeter,
  type MatchMeasure,
  roundedTo,
  type UnknownOutput,
} from './match-meter.js';

/**
 * All pieces of a kernel if they hold at most `pairs` pairs of a query and a key, masked ones included;
 * else as many as hold that number, one at least, spread evenly over those with the most rows.
 */
export function samplePieces({ pieces, rowsOf, shape }: AttributedKernel, pairs: number): number[] {
  const rows = Array.from({ length: pieces }, (_, piece) => rowsOf(piece).rows);
  const fitting = pairs / Math.max(shape.keys, 1);
  if (rows.reduce((sum, count) => sum + count, 0) <= fitting) return [...rows.keys()];
  const most = rows.reduce((max, count) => Math.max(max, count), 0);
  const whole = [...rows.keys()].filter((piece) => rows[piece] === most);
  const count = Math.min(whole.length, Math.max(Math.floor(fitting / most), 1));
  // The middle of each of `count` equal parts.
  return Array.from(
    { length: count },
    (_, i) => whole[Math.floor(((i + 0.5) * whole.length) / count)],
  );
}

/** Runs that have given the same results so far, split as results come in. */
interface RunClasses {
  /** Takes the results of each run for the same rows: arrays to be compared element by element. */
  readonly add: (results: readonly (readonly Float64Array[])[]) => void;
  /** The runs of each class, in the order of their first. */
  readonly classes: () => readonly (readonly number[])[];
}

/** Whether arrays hold the same numbers, NaN being equal to itself and −0 to +0 not. */
function areSame(a: readonly Float64Array[], b: readonly Float64Array[]): boolean {
  return a.every((array, i) => {
    const other = b[i];
    for (let j = 0; j < array.length; j++) if (!Object.is(array[j], other[j])) return false;
    return true;
  });
}

/** All runs in one class at first. */
function createRunClasses(runs: number): RunClasses {
  let classes: (readonly number[])[] =
    runs === 0 ? [] : [Array.from({ length: runs }, (_, i) => i)];
  return {
    add: (results) => {
      classes = classes.flatMap((members) => {
        const parts: number[][] = [];
        for (const run of members) {
          const part = parts.find(([first]) => areSame(results[first], results[run]));
          if (part === undefined) parts.push([run]);
          else part.push(run);
        }
        return parts;
      });
    },
    classes: () => [...classes].sort((a, b) => a[0] - b[0]),
  };
}

/** The results of runs on some rows, compared with the unknown output. */
interface RunComparison {
  readonly measures: readonly MatchMeasure[];
  /** Runs with the same results. */
  readonly classes: readonly (readonly number[])[];
  readonly rows: number;
  /** Number of elements that are equal to the unknown one in only one of two runs. */
  readonly discordant: (a: number, b: number) => number;
}

/** Flags of the elements that are equal to the unknown ones. */
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
