import type { AttributedPiece, EmulatedNames } from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import type { Problem } from '../problem/index.js';
import { attributedKernel, type KernelChoice } from './kernel-choice.js';

/** The runs that show each technique alone, as indices into `choices`. */
interface SinglePlan {
  readonly choices: readonly EmulatedNames[];
  /** Every technique exact, and every one emulated. */
  readonly none: number;
  readonly all: number;
  /** The run, for each technique, in which it alone is emulated. */
  readonly alone: Readonly<Record<string, number>>;
}

/** The runs of a kernel that show the contributions of its techniques. */
export interface RunPlan extends SinglePlan {
  /** Names of the techniques, in the order in which they act. */
  readonly techniques: readonly string[];
  /** The run, for each technique, in which it alone is exact. */
  readonly without: Readonly<Record<string, number>>;
  /** The latter with the output left unrounded as well. */
  readonly withoutUnrounded: Readonly<Record<string, number>>;
  /** The run, for each technique, in which it and all before it are emulated. */
  readonly upTo: Readonly<Record<string, number>>;
}

/** Runs, equal ones only once. */
function createRunList() {
  const choices: EmulatedNames[] = [];
  const indices = new Map<string, number>();
  return {
    choices,
    indexOf: (names: readonly string[]): number => {
      const key = names.join();
      const index = indices.get(key) ?? choices.push(new Set(names)) - 1;
      indices.set(key, index);
      return index;
    },
  };
}

function byTechnique(
  techniques: readonly string[],
  value: (technique: string) => number,
): Record<string, number> {
  return Object.fromEntries(techniques.map((name) => [name, value(name)]));
}

/** The runs that show each technique alone, and all and none of them. */
export function planSingleRuns(techniques: readonly string[]): SinglePlan {
  const { choices, indexOf } = createRunList();
  return {
    choices,
    none: indexOf([]),
    all: indexOf(techniques),
    alone: byTechnique(techniques, (technique) => indexOf([technique])),
  };
}

/** The runs of an attribution. */
export function planRuns(techniques: readonly string[]): RunPlan {
  const { choices, indexOf } = createRunList();
  const left = (...names: readonly string[]): number =>
    indexOf(techniques.filter((name) => !names.includes(name)));
  return {
    techniques,
    choices,
    none: indexOf([]),
    all: indexOf(techniques),
    alone: byTechnique(techniques, (technique) => indexOf([technique])),
    without: byTechnique(techniques, (technique) => left(technique)),
    withoutUnrounded: byTechnique(techniques, (technique) => left(technique, 'output-round')),
    upTo: byTechnique(techniques, (technique) =>
      indexOf(techniques.slice(0, techniques.indexOf(technique) + 1)),
    ),
  };
}

/** Errors of some rows against the oracle, with their signs; NaN where either is not finite. */
export interface RowErrors {
  /** [rows × vDim] */
  readonly out: Float64Array;
  /** [rows], natural logarithm; 0 where both are −∞. */
  readonly lse: Float64Array;
}

/** The errors of some rows, by technique. */
export interface TileErrors {
  /** The first row among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** Errors with every technique emulated: the kernel's errors. */
  readonly all: RowErrors;
  /** Errors with every technique exact: those of the attribution itself, part of all the others too. */
  readonly none: RowErrors;
  /** Errors with one technique emulated and all others exact, by its name. */
  readonly alone: Readonly<Record<string, RowErrors>>;
}

/** An LSE's error; 0 if both are −∞. */
function lseError(lse: number, exact: number): number {
  if (lse === exact) return 0;
  return Number.isFinite(lse) && Number.isFinite(exact) ? lse - exact : NaN;
}

/** The errors of a piece. */
export function tileErrors(
  { firstRow, rows, outputs, lse }: AttributedPiece,
  plan: SinglePlan,
  reference: AttentionReference,
): TileErrors {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const first = firstRow * reference.shape.vDim;
  const ofRun = (run: number): RowErrors => ({
    out: outputs[run].map((x, i) => {
      const error = x - exactOut.values[first + i];
      return Number.isFinite(error) ? error : NaN;
    }),
    lse: lse[run].map((x, row) => lseError(x, exactLse.values[firstRow + row])),
  });
  return {
    firstRow,
    rows,
    all: ofRun(plan.all),
    none: ofRun(plan.none),
    alone: Object.fromEntries(Object.entries(plan.alone).map(([name, run]) => [name, ofRun(run)])),
  };
}

/** The kernel, the problem's exact attention if it is known, and a receiver of the progress. */
export interface AttributedTilesOptions extends KernelChoice {
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Called with the number of tiles done, and of all tiles. */
  readonly progress?: (done: number, total: number) => void;
}

/**
 * The errors of every technique alone, and of all together, element by element, to check bounds of
 * techniques against. Rows are visited in order, some at a time; the visitor may keep its arguments.
 *
 * @throws RequestError as `attributeError`
 */
export function attributeTiles(
  problem: Problem,
  options: AttributedTilesOptions,
  visit: (tile: TileErrors) => void,
): void {
  const kernel = attributedKernel(problem, options);
  const plan = planSingleRuns(kernel.techniques);
  const reference = options.reference ?? attentionOracle(problem);
  const run = kernel.prepareRuns(plan.choices);
  for (let piece = 0; piece < kernel.pieces; piece++) {
    visit(tileErrors(run(piece), plan, reference));
    options.progress?.(piece + 1, kernel.pieces);
  }
}
