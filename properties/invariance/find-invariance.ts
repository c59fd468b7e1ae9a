import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { NotApplicable, type AttentionKernel } from '../laws/index.js';
import { kindsOf } from '../problems/index.js';
import { resolvePromises, type KernelPromises, type ResolvedPromises } from '../suite/promises.js';
import { runKernel } from '../suite/run-kernel.js';
import { dimensionNames, type DimensionName, type LimitedDimension } from './dimensions.js';
import { formOf } from './posed-form.js';
import type { FormattedResults, RowChange } from './row-change.js';
import { setScene, type ComparedRow, type Made, type Scene, type Surroundings } from './scene.js';
import {
  batchSizes,
  headCounts,
  neighbourKeys,
  neighbourQueries,
  places,
  queryCounts,
} from './sequence-surroundings.js';
import { tryDimension, type Found, type Run, type TriedDimension } from './try-dimension.js';
import { pageOrders, pageSizes, runsOf, splitNumbers } from './whole-surroundings.js';

/** The surroundings of a problem and how far they are changed. */
export interface InvarianceOptions {
  /** What the kernel promises; features that the problem has are promised by it. */
  readonly promises?: KernelPromises | undefined;
  /** The sequence, or batch, whose rows are compared; default the first with a query. */
  readonly sequence?: number | undefined;
  /** The dimensions that are tried after `determinism`; default all. */
  readonly dimensions?: readonly DimensionName[] | undefined;
  /** Largest values of dimensions; default `usualLimits`, and less where problems would be large. */
  readonly limits?: Readonly<Partial<Record<LimitedDimension, number>>> | undefined;
  /** Runs of the same problem; default 3. */
  readonly repeats?: number | undefined;
  /** Whether every value is tried, not the small ones and those beside powers of two alone; default false. */
  readonly every?: boolean | undefined;
  /** Called before each dimension with the share of the dimensions that is done. */
  readonly progress?: ((share: number) => void) | undefined;
}

/** Rows that changed, by their places in the given problem. */
export interface ChangedRows extends Omit<RowChange, 'rows'> {
  readonly rows: readonly ComparedRow[];
}

/** The smallest change of the surroundings that was found to change a row. */
export interface InvarianceChange {
  /** The last value with the bits of the smallest one; null where the kernel fails at that already. */
  readonly from: number | null;
  /** The first value, of those that the kernel takes, that changes them. */
  readonly to: number;
  /** The surroundings in which runs differ; null where these are the given ones, and for other dimensions. */
  readonly at: { readonly dimension: DimensionName; readonly value: number } | null;
  /** How bits changed; null where the kernel fails. */
  readonly bits: ChangedRows | null;
  /** How the kernel fails, in a clause; null where bits changed. */
  readonly fault: string | null;
}

/** What was found of one dimension of the surroundings. */
export interface DimensionResult {
  readonly name: DimensionName;
  /** `untried` where fewer than two values could be compared, or nothing can be claimed. */
  readonly result: 'invariant' | 'differs' | 'fails' | 'untried';
  /** The values that the kernel ran at, ascending: nothing is claimed of others. */
  readonly tried: readonly number[];
  /** The values that it did not take. */
  readonly declined: readonly number[];
  readonly change: InvarianceChange | null;
  /** Why it is untried, in a clause; null where it is not. */
  readonly reason: string | null;
}

/** What a search for changes found. */
export interface Invariance {
  /** Whether nothing changed a row over what was tried. */
  readonly invariant: boolean;
  /** The sequence or batch whose rows were compared. */
  readonly sequence: number;
  /** Runs of the kernel in all. */
  readonly runs: number;
  /** Of each dimension that was asked for, `determinism` first. */
  readonly dimensions: readonly DimensionResult[];
}

/** The dimensions that are searched once the same problem gives the same bits. */
const surroundingsOf: Readonly<
  Record<Exclude<DimensionName, 'determinism'>, (scene: Scene) => Surroundings>
> = {
  batch: batchSizes,
  place: places,
  'neighbour-queries': neighbourQueries,
  'neighbour-keys': neighbourKeys,
  queries: queryCounts,
  heads: headCounts,
  splits: splitNumbers,
  'page-size': pageSizes,
  'page-order': pageOrders,
};

const usualRepeats = 3;

/** Runs a kernel on problems, and counts the runs. */
function createRunner(kernel: AttentionKernel, promises: ResolvedPromises) {
  let runs = 0;
  const run = async ({ problem, splits }: Made): Promise<FormattedResults> => {
    runs++;
    const asked: AttentionKernel =
      splits === undefined || promises.splits === null
        ? kernel
        : (
            (of) => (given) =>
              of(given, splits)
          )(promises.splits.kernel);
    const { shape, out, lse, outputs } = await runKernel(asked, problem, promises, null);
    const formats = { out: outputs.out.format, lse: outputs.lse?.format ?? null };
    return { shape, out, lse, formats };
  };
  return { run, count: () => runs };
}

/** Promises with those that a problem makes for its kernel: the features that it has, and the form it is in. */
function promisesWith(promises: KernelPromises, problem: Problem): ResolvedPromises {
  const keys = formOf(problem)?.keys.kind ?? 'packed';
  const ofProblem = kindsOf(problem)
    .filter((kind) => kind !== null)
    .map((kind) => (kind === 'packed' ? keys : kind));
  return resolvePromises({
    ...promises,
    features: [...new Set([...(promises.features ?? []), ...ofProblem])],
  });
}

function untried(name: DimensionName, reason: string): DimensionResult {
  return { name, result: 'untried', tried: [], declined: [], change: null, reason };
}

function changeOf(
  { from, to }: { readonly from: number | null; readonly to: number },
  found: Found,
  place: Surroundings['place'],
  at: InvarianceChange['at'] = null,
): InvarianceChange {
  if (found.kind === 'fault') return { from, to, at, bits: null, fault: found.fault };
  const bits = { ...found.change, rows: found.change.rows.map(place) };
  return { from, to, at, bits, fault: null };
}

function resultOf(
  name: DimensionName,
  { tried, declined, reason, change }: TriedDimension,
  place: Surroundings['place'],
): DimensionResult {
  const values = { name, tried, declined };
  if (change !== null) {
    const result = change.found.kind === 'fault' ? 'fails' : 'differs';
    const described = changeOf(change, change.found, place);
    return { ...values, result, change: described, reason: null };
  }
  if (tried.length > 1) return { ...values, result: 'invariant', change: null, reason: null };
  const why =
    tried.length === 0 ? 'the kernel takes none of its values' : 'the kernel takes one value alone';
  const said = reason === null ? why : `${why}: ${reason}`;
  return { ...values, result: 'untried', change: null, reason: said };
}

/** @throws RequestError for a kernel that gives no output of the given problem, of which nothing can be said */
function rejectNoOutput({ tried, reason, change }: TriedDimension): void {
  const found = change?.from === null ? change.found : null;
  if (found?.kind === 'fault')
    throw new RequestError(`the kernel gives no output of the problem: ${found.fault}`);
  if (tried.length === 0)
    throw new RequestError(`the kernel does not take the problem: ${reason ?? 'it says no more'}`);
}

/** What a search of one dimension found; where a run again gives other bits, that of `determinism` too. */
interface Searched {
  readonly own: DimensionResult;
  readonly determinism: DimensionResult | null;
}

async function searchDimension(
  name: Exclude<DimensionName, 'determinism'>,
  scene: Scene,
  run: Run,
  every: boolean,
): Promise<Searched> {
  try {
    const surroundings = surroundingsOf[name](scene);
    const tried = await tryDimension(surroundings, run, every);
    const { unsteady } = tried;
    const own = resultOf(name, tried, surroundings.place);
    if (unsteady === null) return { own, determinism: null };
    const at = { dimension: name, value: unsteady.value };
    const change = changeOf({ from: 1, to: 2 }, unsteady.found, surroundings.place, at);
    return {
      own,
      determinism: {
        name: 'determinism',
        result: 'differs',
        tried: [1, 2],
        declined: [],
        change,
        reason: null,
      },
    };
  } catch (error) {
    if (!(error instanceof NotApplicable)) throw error;
    return { own: untried(name, error.message), determinism: null };
  }
}

/**
 * Searches for the smallest changes of a problem's surroundings that change the bits of its rows: one dimension after
 * the other, each from its smallest value up. First the same problem is run again: where that gives other bits, nothing
 * is claimed of the rest. What is invariant is so over the values that were tried, and no others.
 * @throws RequestError for a sequence without a row to compare, for promises that do not fit together, and for a kernel
 * that gives no output of the problem itself
 */
export async function findInvariance(
  kernel: AttentionKernel,
  problem: Problem,
  options: InvarianceOptions = {},
): Promise<Invariance> {
  const { repeats = usualRepeats, every = false, limits = {}, progress } = options;
  const promises = promisesWith(options.promises ?? {}, problem);
  const scene = setScene(problem, promises, limits, options.sequence);
  const { run, count } = createRunner(kernel, promises);
  const again = runsOf(scene, repeats);
  const ran = await tryDimension(again, run, true);
  rejectNoOutput(ran);
  const wanted = dimensionNames.filter(
    (name): name is Exclude<DimensionName, 'determinism'> =>
      name !== 'determinism' && (options.dimensions ?? dimensionNames).includes(name),
  );
  let determinism = resultOf('determinism', ran, again.place);
  const found: DimensionResult[] = [];
  for (const [index, name] of wanted.entries()) {
    if (determinism.change !== null) break;
    progress?.(index / wanted.length);
    const searched = await searchDimension(name, scene, run, every);
    determinism = searched.determinism ?? determinism;
    found.push(searched.own);
  }
  const isSteady = determinism.change === null;
  const others = isSteady
    ? found
    : wanted.map((name) => untried(name, 'the kernel gives other bits when it is run again'));
  const all = [determinism, ...others];
  const invariant = all.every(({ change }) => change === null);
  return { invariant, sequence: scene.sequence, runs: count(), dimensions: all };
}
