import type { AttentionReference } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';
import type { MeasuringTerms, SharedStage } from '../conduct/stage.js';
import type { ElementBounds } from '../element-bounds.js';
import type { RowStatistics } from '../row-statistics.js';
import type { KeyTileMaps } from '../structure/key-tile-maps.js';
import type { KeyTilePlan } from '../structure/key-tile-plan.js';
import type { StructureResult } from '../structure/structure-result.js';
import type { PartAnswer } from './measure-apart.js';
import type { PartRequest, PartSettings } from './measure-part.js';
import type { Part } from './part-plan.js';
import { thinnedPart, thinnedShape } from './thinning.js';

/** The measurements to make of a problem, and the parts to make them in. */
export interface AuditPlan {
  readonly shape: ProblemShape;
  readonly parts: readonly Part[];
  readonly settings: PartSettings;
  readonly keyTiles: KeyTilePlan;
  /** The exact values, where they are known. */
  readonly reference: AttentionReference | null;
  /** The bounds, where they are known. */
  readonly bounds: ElementBounds | null;
  /** Whether the usual checks are made, which need textbook attention. */
  readonly withYardstick: boolean;
}

/** All measurements of a problem. */
export interface Measured {
  readonly reference: AttentionReference;
  readonly bounds: ElementBounds;
  readonly structure: readonly StructureResult[];
  /** Null where no tile of keys is off. */
  readonly keyTiles: KeyTileMaps | null;
  readonly rows: RowStatistics | null;
  /** [batch, heads, queries, vDim] of the rows that statistics are made of; null where it was not asked for. */
  readonly yardstick: Float64Array | null;
}

/** The types of the measurements of outputs. */
export interface OutputMeasurements extends MeasuringTerms {
  readonly request: PartRequest;
  readonly answer: PartAnswer;
  readonly data: PartSettings;
  readonly measured: Measured;
}

/** A stage of a plan; its requests are measured like those of any other. */
export type PlannedStage = Pick<SharedStage<OutputMeasurements>, 'name' | 'requests' | 'settle'>;

/** The sizes, the parts and the exact values of the rows that statistics are made of. */
export interface StatisticRows {
  readonly shape: ProblemShape;
  readonly parts: readonly Part[];
}

/** The rows of a plan that statistics are made of. */
export function statisticRows({ shape, parts, settings: { thinning } }: AuditPlan): StatisticRows {
  if (thinning === null) return { shape, parts };
  return {
    shape: thinnedShape(shape, thinning),
    parts: parts.map((part) => thinnedPart(part, thinning)),
  };
}
