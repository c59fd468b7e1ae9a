import type { AttentionReference } from '../../../oracles/index.js';
import { createQuantityBounds, keepBounds, type MeasuredBounds } from '../element-bounds.js';
import { KeyTileCollector } from '../structure/key-tile-maps.js';
import { StructureJudge } from '../structure/structure.js';
import { numberUnits, type RowSurvey } from '../structure/survey-rows.js';
import { statisticRows, type AuditPlan, type Measured, type PlannedStage } from './audit-plan.js';
import type { PartRequest, PartResults } from './measure-part.js';
import { firstRowOf, partShape } from './part-plan.js';
import { emptyReference, fillReference, referenceRows } from './reference-rows.js';
import { placedResults, structureStage, type StructureSink } from './structure-stage.js';
import { thinnedReference } from './thinning.js';

/** Stages that do not depend on one another, and after them those that do; in the end all measurements. */
export type AuditStages = Generator<readonly PlannedStage[], Measured, undefined>;

/**
 * The stage of the oracle: puts the reference into `exact`, unless it is known, and fills in the survey. The survey of an only
 * part is left to the structure tests, so that the bounds need not wait for it.
 */
function referenceStage(
  plan: AuditPlan,
  exact: { reference: AttentionReference | null },
  survey: RowSurvey | null,
): PlannedStage {
  const { parts, shape } = plan;
  const statistics = statisticRows(plan);
  return {
    name: 'oracle',
    requests: parts.map((part) => ({
      kind: 'reference',
      parts: [part],
      withSurvey: survey !== null,
      known:
        plan.reference === null
          ? null
          : referenceRows(plan.reference, partShape(shape, part), firstRowOf(part, shape)),
    })),
    settle: ({ result }, index) => {
      const ofPart = result as PartResults['reference'];
      const row = firstRowOf(parts[index], shape);
      // The reference of an only part is taken as it is: the arrays kept for it serve the stages that follow.
      if (parts.length === 1) exact.reference = plan.reference ?? ofPart.reference;
      else if (plan.reference === null)
        fillReference((exact.reference ??= emptyReference(shape)), ofPart.reference, row);
      if (survey === null || ofPart.survey === null) return;
      const place = firstRowOf(statistics.parts[index], statistics.shape);
      for (const name of ['heaviest', 'squares', 'clustered'] as const)
        survey[name].set(ofPart.survey[name], place);
    },
  };
}

/** The stage of textbook attention, which fills in its output. */
function yardstickStage(plan: AuditPlan, yardstick: Float64Array): PlannedStage {
  const statistics = statisticRows(plan);
  const { vDim } = plan.shape;
  return {
    name: 'yardstick',
    requests: plan.parts.map((part): PartRequest => ({ kind: 'yardstick', parts: [part] })),
    settle: ({ result }, index) => {
      const first = firstRowOf(statistics.parts[index], statistics.shape);
      yardstick.set(result as PartResults['yardstick'], first * vDim);
    },
  };
}

/** The arrays that the stage of the bounds fills in. */
interface BoundsSink {
  readonly quantities: MeasuredBounds['quantities'];
  readonly clustered: Uint8Array;
}

/** The stage of the bounds, unless they are known. */
function boundsStage(
  plan: AuditPlan,
  reference: AttentionReference,
  { quantities, clustered }: BoundsSink,
): PlannedStage {
  const { parts, shape, bounds } = plan;
  const ofBounds = parts.map((part): PartRequest => ({
    kind: 'bounds',
    parts: [part],
    reference: referenceRows(reference, partShape(shape, part), firstRowOf(part, shape)),
  }));
  return {
    name: 'bounds',
    requests: bounds === null ? ofBounds : [],
    settle: ({ result }, index) => {
      const row = firstRowOf(parts[index], shape);
      const measured = result as PartResults['bounds'];
      const place = { rows: clustered.length, first: row, count: measured.clustered.length };
      keepBounds(quantities, measured.quantities, place);
      clustered.set(measured.clustered, row);
    },
  };
}

/**
 * The measurements of an audit, stage by stage: the caller measures the requests of the stages that are given together,
 * in whatever order and by however many threads, and settles their results, stage by stage, before it asks for the next.
 * @param onReference called once the exact values are there
 */
export function* auditStages(
  plan: AuditPlan,
  onReference: (reference: AttentionReference) => void = () => undefined,
): AuditStages {
  const { shape, settings } = plan;
  const { batch, heads, queries, vDim } = shape;
  const rows = batch * heads * queries;
  const exact: { reference: AttentionReference | null } = { reference: plan.reference };
  const { thinning } = settings;
  const statisticQueries = statisticRows(plan).shape.queries;
  const ofStatistics = batch * heads * statisticQueries;
  // The common properties of rows of several parts are known once all are surveyed.
  const survey: RowSurvey | null =
    plan.parts.length === 1
      ? null
      : {
          heaviest: new Int32Array(ofStatistics),
          squares: new Float64Array(ofStatistics),
          clustered: new Uint8Array(ofStatistics),
        };
  const yardstick = plan.withYardstick ? new Float64Array(ofStatistics * vDim) : null;
  yield [
    referenceStage(plan, exact, survey),
    ...(yardstick === null ? [] : [yardstickStage(plan, yardstick)]),
  ];
  const reference = exact.reference ?? emptyReference(shape);
  onReference(reference);
  const { weightFormat } = settings.premises;
  const thinned = thinning === null ? reference : thinnedReference(reference, thinning);
  const surveyed = survey && {
    survey,
    units: numberUnits(thinned, survey.clustered, weightFormat),
  };
  const judge = new StructureJudge(settings.limits, settings.premises);
  const tiles = new KeyTileCollector();
  const statistics: StructureSink['rows'] = { statistics: null };
  const known = { reference: thinned, surveyed };
  const ofRows = {
    quantities: createQuantityBounds(reference),
    clustered: new Uint8Array(rows),
  };
  yield [
    structureStage(plan, reference, known, { judge, tiles, rows: statistics }),
    boundsStage(plan, reference, ofRows),
  ];
  const { quantities, clustered } = ofRows;
  const { unit } = numberUnits(reference, clustered, settings.arithmetic.weightFormat);
  return {
    reference,
    bounds: plan.bounds ?? { quantities, unit },
    structure: placedResults(judge.results(), plan),
    keyTiles: tiles.result(),
    rows: statistics.statistics,
    yardstick,
  };
}
