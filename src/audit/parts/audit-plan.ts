import type { AttentionReference } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';
import type { ElementBounds } from '../element-bounds.js';
import type { KeyTilePlan } from '../structure/key-tile-plan.js';
import type { PartRequest, PartResults, PartSettings } from './measure-part.js';
import type { Part } from './part-plan.js';
import { thinnedPart, thinnedShape } from './thinning.js';

/** What is to be measured of a problem, and in which parts. */
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
  /** What progress is told of. */
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

/** Those of a plan. */
export function statisticRows({ shape, parts, settings: { thinning } }: AuditPlan): StatisticRows {
  if (thinning === null) return { shape, parts };
  return {
    shape: thinnedShape(shape, thinning),
    parts: parts.map((part) => thinnedPart(part, thinning)),
  };
}
