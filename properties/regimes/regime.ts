import type { FormatName, NumberFormat } from '../../src/formats/index.js';
import type { PlainProblem } from '../plain-problem.js';
import type { RandomValues } from '../random-values.js';
import type { ScaleKind } from '../scale-kind.js';
import type { SizeName, SizeRange, Sizes } from '../size-range.js';
import type { Tiling } from '../tiling.js';
import type { ProblemValues } from './tensor-values.js';

/** What the values of a problem are drawn from. */
export interface RegimeRequest {
  readonly sizes: Sizes;
  /** Of Q, K and V. */
  readonly format: NumberFormat;
  readonly random: RandomValues;
  readonly tiling: Tiling;
  /** The kind that the problem's scale is to be of. */
  readonly scaleKind: ScaleKind;
}

/** Values before they are rounded to the format. */
export interface RegimeValues extends ProblemValues {
  /** Factor on Q·K, of the kind asked for; left out where any of that kind will do. */
  readonly scale?: number;
}

/** A kind of problem: how to make one, and how to tell one. */
export interface Regime {
  /** What its problems look like, in one line. */
  readonly description: string;
  /** What it is meant to provoke in a kernel, in one line. */
  readonly provokes: string;
  /** Sizes it needs to show that; default any. */
  readonly sizes?: (tiling: Tiling) => Partial<Record<SizeName, SizeRange>>;
  /** Formats it makes sense in; default all. */
  readonly formats?: readonly FormatName[];
  /** Kinds of scale that its problems have; default all. */
  readonly scales?: readonly ScaleKind[];
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
