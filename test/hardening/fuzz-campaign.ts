import { watchAllocations, type AllocationWatch } from './allocation-watch.js';
import { emptied, fuzzTargets, pickTarget, type FuzzTarget } from './fuzz-targets.js';
import { seededRandom } from './random.js';
import { refusalFault } from './refusal-fault.js';

/** Something that no input may bring about. */
export interface FuzzFinding {
  readonly index: number;
  readonly target: string;
  readonly what: string;
}

/** What one input came to. */
export interface FuzzOutcome {
  readonly target: string;
  readonly isRefused: boolean;
  /** Time of the processor, for a busy machine's clock tells nothing. */
  readonly milliseconds: number;
  /** The largest array that was asked for, in bytes. */
  readonly allocated: number;
  readonly finding: FuzzFinding | null;
}

/**
 * The targets of a name; all without one.
 * @throws Error for a name that is none's, with those that there are
 */
export function targetsNamed(name: string | undefined): readonly FuzzTarget[] {
  if (name === undefined) return fuzzTargets;
  const targets = fuzzTargets.filter((target) => target.name === name);
  if (targets.length > 0) return targets;
  throw new Error(`no reader ${name}; there are ${fuzzTargets.map((one) => one.name).join(', ')}`);
}

/** How much of a processor's time one input may take, in milliseconds; most take less than ten. */
export const mostMilliseconds = 5_000;

async function runOne(
  index: number,
  seed: number,
  folder: string,
  targets: readonly FuzzTarget[],
  watch: AllocationWatch,
): Promise<FuzzOutcome> {
  const random = seededRandom(seed, index);
  const target = pickTarget(random, targets);
  emptied(folder);
  const { bytes, mostAllocated, exercise } = target.make(folder, random);
  watch.largest();
  const start = process.cpuUsage();
  let refusal: unknown = null;
  try {
    await exercise();
  } catch (error) {
    refusal = error;
  }
  const { user, system } = process.cpuUsage(start);
  const milliseconds = (user + system) / 1000;
  const allocated = watch.largest();
  const faults = [
    refusal === null ? null : refusalFault(refusal),
    allocated > mostAllocated ? `asked for ${allocated} bytes, the input has ${bytes}` : null,
    milliseconds > mostMilliseconds ? `took ${Math.round(milliseconds)} ms` : null,
  ].filter((fault) => fault !== null);
  const finding =
    faults.length > 0 ? { index, target: target.name, what: faults.join('; ') } : null;
  const isRefused = refusal !== null;
  return { target: target.name, isRefused, milliseconds, allocated, finding };
}

/**
 * Exercises the inputs of indices `from` to `to` − 1 in this process, each of which depends on the
 * seed and its index only.
 * @param folder is emptied for each input
 * @param onOutcome is told of each input before the next is begun
 */
export async function fuzz(
  {
    seed,
    from,
    to,
    folder,
    targets = fuzzTargets,
  }: {
    readonly seed: number;
    readonly from: number;
    readonly to: number;
    readonly folder: string;
    readonly targets?: readonly FuzzTarget[];
  },
  onOutcome: (outcome: FuzzOutcome, index: number) => void,
): Promise<void> {
  const watch = watchAllocations();
  try {
    for (let index = from; index < to; index++)
      onOutcome(await runOne(index, seed, folder, targets, watch), index);
  } finally {
    watch.end();
  }
}
