import {
  forEachWeightTile,
  type ProjectedMatrices,
  type Progress,
  type WeightVisitor,
  WorkingMemories,
} from '../../../oracles/index.js';
import { decodeTensor, formats, type FormatName } from '../../formats/index.js';
import { keptWeights } from '../../problem/index.js';
import { anyDropout, type Premises } from '../premises/premises.js';
import { CommonOffset } from './common-offset.js';
import {
  lseErrorOf,
  SlopeDispersion,
  sumLseErrors,
  tanhError,
  type DispersionState,
  type LseSums,
  type StructureInput,
} from './head-tests.js';
import { ScorePlaces, writtenFormat, type ScorePlacesState } from './declared/score-places.js';
import {
  SelfNormalised,
  type LseError,
  type SelfNormalisedState,
} from './declared/self-normalised.js';
import { createInstruments } from './instruments.js';
import { PooledProjections, type PooledState } from './pooled-projections.js';
import { RowCollector } from './row-collector.js';
import {
  leastRowTolerance,
  rowTolerance,
  rowVariances,
  type RowProjections,
  type Variances,
} from './row-tolerance.js';
import {
  addProjection,
  instrumentCount,
  judgePooled,
  structureEntries,
  type StructurePlace,
} from './structure-entries.js';
import { outputGroups, projectionFormat, structureTileRows } from './structure-statistic.js';
import { WorstResults, type StructureResult } from './structure-result.js';
import { fineGroups, type RowSurvey, type RowUnits } from './survey-rows.js';

/** The number of significant bits from which on the places of weights in an ulp tell nothing. */
const finestPrecision = 12;

/** Makes a function that makes empty collections of the errors of rows, for the premises of an audit. */
export function pooledFactory({ weightFormat, exponential }: Premises): () => PooledProjections {
  const offset = commonOffset(weightFormat);
  return () => new PooledProjections(instrumentCount, offset, exponential);
}

/** The offset of P's roundings that rows may share; null where P is as fine as fp32. */
function commonOffset(weightFormat: FormatName): CommonOffset | null {
  return formats[weightFormat].precision <= finestPrecision ? new CommonOffset(weightFormat) : null;
}

/** Number of roundings of a weight before its product with V. */
function appliedRoundings({ dropout }: StructureInput['problem'], premises: Premises): number {
  return dropout === undefined ? 1 : anyDropout(dropout.probability, premises).roundings;
}

/** The sums that some rows of a head add to its tests. */
export interface HeadPart {
  readonly pooled: PooledState;
  readonly dispersion: DispersionState;
  /** Null where the LSE's mean is not tested. */
  readonly lse: LseSums | null;
  /** Null where the kernel declares no scores in a short format. */
  readonly written: {
    readonly sums: SelfNormalisedState;
    readonly places: ScorePlacesState;
  } | null;
}

/** The structure tests' results for a problem that may be a part of another: data that a thread may send. */
export interface StructurePart {
  /** Results of rows and tiles: places are those of this problem. */
  readonly results: readonly StructureResult[];
  /** The parts of the tests by head. */
  readonly heads: readonly HeadPart[];
}

/** Facts about the rows before their errors are looked at. */
interface KnownRows {
  readonly survey: RowSurvey;
  readonly units: RowUnits;
}

/**
 * The error of a row's LSE with the bounds of any correct kernel's, and of one that declares this one's premises; null without an
 * LSE.
 */
function declaredLseError(input: StructureInput, row: number): LseError | null {
  const ofRow = lseErrorOf(input, row);
  if (ofRow === null) return null;
  const { ofWeights, ofScores, ofValue } = input.bound.row(row).declared;
  const { exponential } = input.premises;
  return {
    error: ofRow.error,
    random: ofRow.amplitude / Math.sqrt(3),
    systematic: ofRow.systematic + exponential + (ofWeights - ofScores) + ofValue,
  };
}

/** Callbacks during a measurement, and memories that its loops work in. */
interface StructureCallbacks {
  readonly progress?: Progress | undefined;
  /** Sees the weights of all rows as well, since the walk over them is made anyway. */
  readonly observer?: WeightVisitor | undefined;
  readonly memories?: WorkingMemories | undefined;
}

/**
 * Projects the errors of all rows, judges rows and tiles of 128 rows, and sums up the data that heads are judged
 * by. A problem that is a part of another begins at a tile.
 *
 * Rows that hold NaN or infinities, rows of zeros and rows whose sums overflow fp64 are left out.
 */
export function measureStructure(
  input: StructureInput,
  { survey, units }: KnownRows,
  { progress, observer, memories = new WorkingMemories() }: StructureCallbacks = {},
): StructurePart {
  const { problem, reference, outputs, bound, premises, limits } = input;
  const { values: out, format: outputFormat } = outputs.out;
  const { shape } = reference;
  const { queries } = shape;
  const headCount = shape.batch * shape.heads;
  const { weightFormat, isUsual, exponential } = premises;
  const { deviations } = limits;
  const offset = commonOffset(weightFormat);
  const model = {
    reference,
    out,
    outputFormat,
    bound,
    makeInstruments: createInstruments({ problem, reference, bound, weightFormat }, survey),
    weightGroups: fineGroups(weightFormat),
    outputGroups: outputGroups(outputFormat),
    sumsTruncate: weightFormat !== 'fp32' && weightFormat !== 'fp64',
    scoreError: tanhError(problem, premises),
    roundingErrors: offset?.errors ?? null,
    premises,
    weightFormat,
    weightScale: premises.weightScale,
    kept: keptWeights(problem, shape),
    roundings: appliedRoundings(problem, premises),
    sinks: problem.sink === undefined ? null : decodeTensor(problem.sink.logits),
    isSinkInLse: problem.sink?.inLse ?? false,
  };
  const pooled = pooledFactory(premises);
  const [tile, head] = [pooled(), pooled()];
  const worst = new WorstResults();
  const dispersion = new SlopeDispersion();
  const written = writtenFormat(problem, premises);
  const places = written === null ? null : new ScorePlaces(problem, reference, written);
  const selfNormalised = new SelfNormalised();
  const rowEntries = structureEntries.filter(({ scope }) => scope === 'row');
  const heads: HeadPart[] = [];

  const judgeRow = (row: RowProjections, variances: Variances, place: StructurePlace) => {
    const allowance = { variances, deviations: deviations.row, exponential };
    for (const { test, instrument: d } of rowEntries) {
      const [signed, norm] = [row.signed[d], row.norm[d]];
      if (worst.isBeyond(test, 'row', Math.abs(signed) / leastRowTolerance(row, d, allowance)))
        addProjection(worst, test, place, {
          signed,
          norm,
          tolerance: rowTolerance(row, d, allowance),
        });
    }
  };

  /** Passes a row on to its tile and head, and ends those that end with it. */
  const finishRow = (collector: RowCollector, row: number, local: number) => {
    const query = row % queries;
    const ofHead = Math.floor(row / queries);
    const collected = collector.finish(row, local, tile);
    if (collected !== null) {
      const variances = rowVariances(collected, exponential);
      judgeRow(collected, variances, { scope: 'row', head: ofHead, firstRow: query, rows: 1 });
      tile.add(collected, variances, units.isShared[row] === 1 ? units.unit[row] : null);
      dispersion.add(collected, variances, units.unit[row]);
      if (places !== null)
        selfNormalised.add(
          { row: collected, variances, lse: declaredLseError(input, row) },
          units.unit[row],
          places.curvature(local),
        );
    }
    const isLast = query === queries - 1;
    if (isLast || query % structureTileRows === structureTileRows - 1) {
      const firstRow = query - (query % structureTileRows);
      const place = { scope: 'tile', head: ofHead, firstRow, rows: query - firstRow + 1 } as const;
      judgePooled(worst, tile, place, isUsual, deviations.tile);
      head.merge(tile);
      tile.clear();
    }
    if (!isLast) return;
    heads.push({
      pooled: head.state(),
      dispersion: dispersion.state(),
      lse: sumLseErrors(input, ofHead, units.unit),
      written: places && { sums: selfNormalised.state(), places: places.state() },
    });
    selfNormalised.clear();
    places?.clear();
    dispersion.clear();
    head.clear();
  };

  let finished = 0;
  RowCollector.with(memories, model, tile.places, (collector) => {
    const visitor: WeightVisitor = {
      begin: (ofHead, firstRow, rows) => {
        collector.begin(ofHead * queries + firstRow, rows);
        places?.begin(ofHead * queries + firstRow, rows, (i) => collector.own(i));
        observer?.begin(ofHead, firstRow, rows);
      },
      visit: (weights) => {
        collector.visit(weights);
        places?.visit(weights, (i) => collector.isUsed(i));
        observer?.visit(weights);
      },
      end: (ofHead, firstRow, rows) => {
        collector.end(tile);
        observer?.end(ofHead, firstRow, rows);
        for (let i = 0; i < rows; i++) finishRow(collector, ofHead * queries + firstRow + i, i);
        finished += rows;
        progress?.(finished / (headCount * queries));
      },
    };
    const projected: ProjectedMatrices = {
      count: instrumentCount,
      format: projectionFormat(weightFormat, outputFormat),
      ofBlock: (_head, _firstRow, rows) =>
        collector.directions.map((direction) => direction.subarray(0, rows * shape.vDim)),
    };
    forEachWeightTile(problem, reference, visitor, { projected, memories });
  });
  return { results: worst.list(), heads };
}
