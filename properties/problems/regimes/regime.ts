import { type ScaleKind, scaleKinds } from '../../../kernels/index.js';
import { type FeatureKind } from '../features/feature-kinds.js';
import type { FormatName, NumberFormat } from '../../../src/formats/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { ProblemFeatures } from '../../../src/problem/index.js';
import type { FeatureRequest } from '../features/feature-request.js';
import type { PlainProblem } from '../plain-problem.js';
import type { FullSizeRange, SizeName, SizeRange, Sizes } from '../sizes.js';
import { headRows, type ProblemValues, type RandomValues, rowOf } from '../values.js';

export { scaleKinds, type ScaleKind };

/** The order in which a kernel visits the blocks of keys. */
export type BlockOrder = 'first-to-last' | 'last-to-first';

/** Properties of a kernel assumed by the regimes that depend on blocks of keys. */
export interface Tiling {
  readonly blockKeys: number;
  /** log2 of the growth of the maximum from block to block around which the regimes of steps stay. */
  readonly threshold: number;
  /** The direction in which maxima grow; drawn for each problem if left out. */
  readonly order?: BlockOrder | undefined;
}

/** Arguments for drawing the values of a problem. */
export interface RegimeRequest {
  readonly sizes: Sizes;
  /** Format of Q, K and V. */
  readonly format: NumberFormat;
  readonly random: RandomValues;
  readonly tiling: Tiling;
  /** The kind of the problem's scale. */
  readonly scaleKind: ScaleKind;
}

/** Values before they are rounded to the format. */
export interface RegimeValues extends ProblemValues {
  /** Factor on Q·K, of the kind asked for; left out if any of that kind will do. */
  readonly scale?: number;
}

/** A kind of problem, with functions to draw one and to recognise one. */
export interface Regime {
  /** The appearance of its problems, in one line. */
  readonly description: string;
  /** The behaviour of a kernel that it is meant to provoke, in one line. */
  readonly provokes: string;
  /** Sizes it needs to show that; default any. */
  readonly sizes?: (tiling: Tiling) => Partial<Record<SizeName, SizeRange>>;
  /** Formats it makes sense in; default all. */
  readonly formats?: readonly FormatName[];
  /** Kinds of scale that its problems have; default all. */
  readonly scales?: readonly ScaleKind[];
  /** Features that all its problems have; default none. */
  readonly features?: readonly FeatureKind[];
  /** Features that none of its problems has, since they conflict with its own; default none. */
  readonly without?: readonly FeatureKind[];
  /** Draws its features where they are not as usual; features left out are drawn as for any problem. */
  readonly drawFeatures?: (request: Omit<FeatureRequest, 'sequences'>) => ProblemFeatures;
  /** Sizes of its problems, in place of those drawn; null where the ranges hold none. */
  readonly lengths?: (
    ranges: Readonly<Record<SizeName, FullSizeRange>>,
    tiling: Tiling,
    random: RandomValues,
  ) => Partial<Sizes> | null;
  /** Whether its problems depend on the tiling; default false. */
  readonly tiled?: boolean;
  /**
   * Values of one problem, the same for the same stream of random numbers. Where a draw may miss the
   * regime by chance, `holds` says so and another one is made.
   */
  readonly draw: (request: RegimeRequest) => RegimeValues;
  /**
   * Whether a problem, perhaps shrunken, is one of the regime, masks and softcap aside: they hide
   * scores without making them others.
   */
  readonly holds: (plain: PlainProblem, tiling: Tiling) => boolean;
}

/** FlashAttention-4's block of keys, and its threshold for 16-bit inputs. */
export const usualTiling: Tiling = { blockKeys: 128, threshold: 8 };

/** Distance from the threshold of the regimes of steps, in log2. */
export const besideThreshold = 1 / 16;

const blockOrders: readonly string[] = ['first-to-last', 'last-to-first'] satisfies BlockOrder[];

/**
 * A tiling with its defaults filled in. A threshold of 0 is that of a kernel that always rescales.
 * @throws RequestError for a block that is no positive whole number, a threshold that is no multiple of
 * 1/16 from 0, and an unknown order
 */
export function resolveTiling(given: Partial<Tiling> = {}): Tiling {
  const tiling = { ...usualTiling, ...given };
  const { blockKeys, threshold, order } = tiling;
  if (!(Number.isSafeInteger(blockKeys) && blockKeys >= 1))
    throw new RequestError(
      `constraint tiling.blockKeys is ${blockKeys}; give a whole number from 1`,
    );
  if (!(threshold >= 0 && Number.isInteger(threshold / besideThreshold)))
    throw new RequestError(
      `constraint tiling.threshold is ${threshold}; give a multiple of ${besideThreshold} from 0, such as ${usualTiling.threshold}`,
    );
  if (order !== undefined && !blockOrders.includes(order))
    throw new RequestError(
      `constraint tiling.order is ${JSON.stringify(order)}; choose from ${blockOrders.join(', ')}`,
    );
  return tiling;
}

/**
 * The scores of every row of every query head, in fp64, without scale, masks and softcap: one array,
 * overwritten by the next row.
 */
export function* rawScoreRows({ sizes, values }: PlainProblem): Generator<Float64Array> {
  const { keys, qkDim } = sizes;
  const scores = new Float64Array(keys);
  for (const { firstQuery, queries, firstKey } of headRows(sizes))
    for (let row = 0; row < queries; row++) {
      const query = rowOf(values.q, firstQuery + row, qkDim);
      for (let key = 0; key < keys; key++) {
        const offset = (firstKey + key) * qkDim;
        let sum = 0;
        for (let c = 0; c < qkDim; c++) sum += query[c] * values.k[offset + c];
        scores[key] = sum;
      }
      yield scores;
    }
}

/** Whether the scores of some row pass a test; `scale` is the problem's. */
export function someRow(
  plain: PlainProblem,
  test: (raw: Float64Array, scale: number) => boolean,
): boolean {
  for (const raw of rawScoreRows(plain)) if (test(raw, plain.scale)) return true;
  return false;
}

/** Whether there are rows and the scores of each pass a test; `scale` is the problem's. */
export function everyRow(
  plain: PlainProblem,
  test: (raw: Float64Array, scale: number) => boolean,
): boolean {
  let rows = 0;
  for (const raw of rawScoreRows(plain)) {
    if (!test(raw, plain.scale)) return false;
    rows++;
  }
  return rows > 0;
}

/** The largest of some numbers; −∞ of none, NaN where there is one. */
export function maximum(values: Float64Array): number {
  let largest = -Infinity;
  for (const x of values) largest = Math.max(largest, x);
  return largest;
}
