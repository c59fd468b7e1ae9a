import type { AttentionReference } from '../../../oracles/index.js';
import type { ProblemShape } from '../../problem/index.js';
import { combinations, createCombinedBounds } from '../bounds/index.js';
import type { ElementBounds, MeasuredBounds } from '../element-bounds.js';
import type { RowStatistics } from '../row-statistics.js';
import type { KeyTilePlan } from '../structure/key-tile-plan.js';
import { StructureJudge } from '../structure/structure.js';
import type { StructureResult } from '../structure/structure-result.js';
import { numberUnits, type RowSurvey, type RowUnits } from '../structure/survey-rows.js';
import type { PartRequest, PartResults, PartSettings } from './measure-part.js';
import { firstRowOf, partShape, placedInWhole, type Part } from './part-plan.js';
import { emptyReference, fillReference, referenceRows } from './reference-rows.js';
import { placedAmongAll, thinnedPart, thinnedReference, thinnedShape } from './thinning.js';

/** Requests that do not depend on one another. */
export interface Stage {
  /** What progress is told of. */
  readonly name: 'oracle' | 'structure' | 'bounds';
  readonly requests: readonly PartRequest[];
  /** Takes the results, in the order of the requests. */
  readonly settle: (result: PartResults[PartRequest['kind']], index: number) => void;
}

/** Stages that do not depend on one another, and after them those that do; in the end what was measured. */
export type AuditStages = Generator<readonly Stage[], Measured, undefined>;

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

/** All that is measured of a problem. */
export interface Measured {
  readonly reference: AttentionReference;
  readonly bounds: ElementBounds;
  readonly structure: readonly StructureResult[];
  readonly rows: RowStatistics | null;
  /** [batch, heads, queries, vDim] of the rows that statistics are made of; null where it was not asked for. */
  readonly yardstick: Float64Array | null;
}

/** Rows [first, first + rows) of what is known of rows. */
function rowsOf<T extends Readonly<Record<keyof T, Int32Array | Float64Array | Uint8Array>>>(
  all: T,
  first: number,
  rows: number,
): T {
  const cut = Object.entries(all as Record<string, Float64Array>).map(([name, values]) => [
    name,
    values.subarray(first, first + rows),
  ]);
  return Object.fromEntries(cut) as T;
}

/** The sizes, the parts and the exact values of the rows that statistics are made of. */
interface StatisticRows {
  readonly shape: ProblemShape;
  readonly parts: readonly Part[];
}

function statisticRows({ shape, parts, settings: { thinning } }: AuditPlan): StatisticRows {
  if (thinning === null) return { shape, parts };
  return {
    shape: thinnedShape(shape, thinning),
    parts: parts.map((part) => thinnedPart(part, thinning)),
  };
}

/** The stage of the oracle: puts the reference into `exact`, unless it is known, and fills in the survey. */
function referenceStage(
  plan: AuditPlan,
  exact: { reference: AttentionReference | null },
  survey: RowSurvey,
): Stage {
  const { parts, shape } = plan;
  const statistics = statisticRows(plan);
  return {
    name: 'oracle',
    requests: parts.map((part) => ({
      kind: 'reference',
      parts: [part],
      known:
        plan.reference === null
          ? null
          : referenceRows(plan.reference, partShape(shape, part), firstRowOf(part, shape)),
    })),
    settle: (result, index) => {
      const ofPart = result as PartResults['reference'];
      const row = firstRowOf(parts[index], shape);
      // That of the only part is taken as it is: what is kept for it serves the stages that follow.
      if (parts.length === 1) exact.reference = plan.reference ?? ofPart.reference;
      else if (plan.reference === null)
        fillReference((exact.reference ??= emptyReference(shape)), ofPart.reference, row);
      const place = firstRowOf(statistics.parts[index], statistics.shape);
      for (const name of ['heaviest', 'squares', 'clustered'] as const)
        survey[name].set(ofPart.survey[name], place);
    },
  };
}

/** What the stage of the structure tests fills in. */
interface StructureSink {
  readonly judge: StructureJudge;
  readonly rows: { statistics: RowStatistics | null };
}

/** Writes a part's statistics of rows to where its rows are. */
function fillRows(
  sink: StructureSink['rows'],
  part: RowStatistics,
  row: number,
  all: number,
): void {
  const { visibleKeys, entropy, lag } = (sink.statistics ??= {
    visibleKeys: new Int32Array(all),
    entropy: new Float64Array(all),
    lag: part.lag === null ? null : new Float64Array(all),
  });
  visibleKeys.set(part.visibleKeys, row);
  entropy.set(part.entropy, row);
  if (part.lag !== null) lag?.set(part.lag, row);
}

/** The stage of the structure tests: rows, tiles and heads, then key tiles. */
function structureStage(
  plan: AuditPlan,
  reference: AttentionReference,
  known: {
    readonly reference: AttentionReference;
    readonly survey: RowSurvey;
    readonly units: RowUnits;
  },
  { judge, rows }: StructureSink,
): Stage {
  const { parts, shape, keyTiles } = plan;
  const statistics = statisticRows(plan);
  const all = shape.batch * shape.heads * shape.queries;
  const ofErrors = statistics.parts.map((part, index): PartRequest => {
    const first = firstRowOf(part, statistics.shape);
    return {
      kind: 'structure',
      parts: [parts[index]],
      reference: referenceRows(known.reference, partShape(statistics.shape, part), first),
      survey: rowsOf(known.survey, first, part.rows),
      units: rowsOf(known.units, first, part.rows),
    };
  });
  const ofPart = (part: Part) =>
    referenceRows(reference, partShape(shape, part), firstRowOf(part, shape));
  const ofKeyTiles = keyTiles.groups.map((group): PartRequest => {
    const blocks = group.blocks.map((block) => ({ head: group.head, ...block }));
    return { kind: 'key-tiles', parts: blocks, references: blocks.map(ofPart), group };
  });
  return {
    name: 'structure',
    requests: [...ofErrors, ...ofKeyTiles],
    settle: (result, index) => {
      if (index >= parts.length) return judge.addResults(result as PartResults['key-tiles']);
      const measured = result as PartResults['structure'];
      const part = statistics.parts[index];
      judge.addResults(placedInWhole(measured.structure.results, part));
      const ofHead = part.head === null ? statistics.shape.queries : part.rows;
      for (const head of measured.structure.heads) judge.addHeadPart(head, ofHead);
      if (measured.rows !== null) fillRows(rows, measured.rows, firstRowOf(part, shape), all);
    },
  };
}

/** Results with places among all rows; those of key tiles have them. */
function placedResults(
  results: readonly StructureResult[],
  { settings: { thinning } }: AuditPlan,
): readonly StructureResult[] {
  if (thinning === null) return results;
  return results.map((result) =>
    result.test === 'key-tile' ? result : placedAmongAll(result, thinning),
  );
}

/** What the stage of the bounds fills in. */
interface BoundsSink {
  readonly quantities: MeasuredBounds['quantities'];
  readonly clustered: Uint8Array;
  readonly yardstick: Float64Array | null;
}

/** The stage of the bounds, and of textbook attention. */
function boundsStage(
  plan: AuditPlan,
  reference: AttentionReference,
  { quantities, clustered, yardstick }: BoundsSink,
): Stage {
  const { parts, shape, bounds } = plan;
  const { vDim } = shape;
  const statistics = statisticRows(plan);
  const ofBounds = parts.map((part): PartRequest => ({
    kind: 'bounds',
    parts: [part],
    reference: referenceRows(reference, partShape(shape, part), firstRowOf(part, shape)),
  }));
  const known = bounds === null ? ofBounds : [];
  return {
    name: 'bounds',
    requests: [
      ...known,
      ...(yardstick === null
        ? []
        : parts.map((part): PartRequest => ({ kind: 'yardstick', parts: [part] }))),
    ],
    settle: (result, index) => {
      const at = index % parts.length;
      if (index >= known.length) {
        const first = firstRowOf(statistics.parts[at], statistics.shape);
        return yardstick!.set(result as PartResults['yardstick'], first * vDim);
      }
      const row = firstRowOf(parts[at], shape);
      const measured = result as PartResults['bounds'];
      for (const name of combinations) {
        quantities.out[name].set(measured.quantities.out[name], row * vDim);
        quantities.lse[name].set(measured.quantities.lse[name], row);
      }
      clustered.set(measured.clustered, row);
    },
  };
}

/**
 * What an audit measures, stage by stage: whoever runs it measures the requests of the stages that are given together, in
 * whatever order and by however many threads, and settles their results, stage by stage, before it asks for the next.
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
  const survey: RowSurvey = {
    heaviest: new Int32Array(ofStatistics),
    squares: new Float64Array(ofStatistics),
    clustered: new Uint8Array(ofStatistics),
  };
  yield [referenceStage(plan, exact, survey)];
  const reference = exact.reference ?? emptyReference(shape);
  onReference(reference);
  const { weightFormat } = settings.premises;
  const thinned = thinning === null ? reference : thinnedReference(reference, thinning);
  const units = numberUnits(thinned, survey.clustered, weightFormat);
  const judge = new StructureJudge(settings.limits, settings.premises);
  const statistics: StructureSink['rows'] = { statistics: null };
  const known = { reference: thinned, survey, units };
  const ofRows = {
    quantities: { out: createCombinedBounds(rows * vDim), lse: createCombinedBounds(rows) },
    clustered: new Uint8Array(rows),
    yardstick: plan.withYardstick ? new Float64Array(ofStatistics * vDim) : null,
  };
  yield [
    structureStage(plan, reference, known, { judge, rows: statistics }),
    boundsStage(plan, reference, ofRows),
  ];
  const { quantities, clustered, yardstick } = ofRows;
  const { unit } = numberUnits(reference, clustered, settings.arithmetic.weightFormat);
  return {
    reference,
    bounds: plan.bounds ?? { quantities, unit },
    structure: placedResults(judge.results(), plan),
    rows: statistics.statistics,
    yardstick,
  };
}
