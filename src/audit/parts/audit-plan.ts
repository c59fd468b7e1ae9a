import type { AttentionReference } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';
import type { ElementBounds } from '../element-bounds.js';
import type { KeyTilePlan } from '../structure/key-tile-plan.js';
import type { PartRequest, PartResults, PartSettings } from './measure-part.js';
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

/** Requests that do not depend on one another. */
export interface Stage {
  /** The name of the stage in reports of progress. */
  readonly name: 'oracle' | 'yardstick' | 'structure' | 'bounds';
  readonly requests: readonly PartRequest[];
  /** Takes the results, in the order of the requests. */
  readonly settle: (result: PartResults[PartRequest['kind']], index: number) => void;
}

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
