import type { AttentionReference } from '../../../oracles/index.js';
import type { RowStatistics } from '../row-statistics.js';
import type { KeyTileCollector } from '../structure/key-tile-maps.js';
import type { StructureJudge } from '../structure/structure.js';
import type { StructureResult } from '../structure/structure-result.js';
import type { SurveyedRows } from '../structure/survey-rows.js';
import { statisticRows, type AuditPlan, type PlannedStage } from './audit-plan.js';
import type { PartRequest, PartResults } from './measure-part.js';
import { firstRowOf, partShape, placedInWhole, type Part } from './part-plan.js';
import { referenceRows } from './reference-rows.js';
import { placedAmongAll } from './thinning.js';

/** Rows [first, first + rows) of arrays of facts about rows. */
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

/** The objects that the stage of the structure tests fills in. */
export interface StructureSink {
  readonly judge: StructureJudge;
  readonly tiles: KeyTileCollector;
  readonly rows: { statistics: RowStatistics | null };
}

/** Writes a part's statistics of rows to the places of its rows. */
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
export function structureStage(
  plan: AuditPlan,
  reference: AttentionReference,
  known: { readonly reference: AttentionReference; readonly surveyed: SurveyedRows | null },
  { judge, tiles, rows }: StructureSink,
): PlannedStage {
  const { parts, shape, keyTiles } = plan;
  const statistics = statisticRows(plan);
  const all = shape.batch * shape.heads * shape.queries;
  const ofErrors = statistics.parts.map((part, index): PartRequest => {
    const first = firstRowOf(part, statistics.shape);
    return {
      kind: 'structure',
      parts: [parts[index]],
      reference: referenceRows(known.reference, partShape(statistics.shape, part), first),
      surveyed: known.surveyed && {
        survey: rowsOf(known.surveyed.survey, first, part.rows),
        units: rowsOf(known.surveyed.units, first, part.rows),
      },
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
    settle: ({ result }, index) => {
      if (index >= parts.length) {
        const { worst, shares } = result as PartResults['key-tiles'];
        judge.addResults(worst);
        return tiles.add(shares);
      }
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
export function placedResults(
  results: readonly StructureResult[],
  { settings: { thinning } }: AuditPlan,
): readonly StructureResult[] {
  if (thinning === null) return results;
  return results.map((result) =>
    result.test === 'key-tile' ? result : placedAmongAll(result, thinning),
  );
}
