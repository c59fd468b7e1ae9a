import { yardstickAttention, type MaximumRule } from '../../../kernels/index.js';
import {
  attentionOracle,
  type Accuracy,
  type AttentionReference,
  type Progress,
  type WorkingMemories,
} from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { KernelBound, type KernelArithmetic } from '../bounds/index.js';
import { measureBounds, type MeasuredBounds, type RowsBoundVisitor } from '../element-bounds.js';
import type { GivenQuantity } from '../kernel-outputs.js';
import type { Premises } from '../premises/premises.js';
import { createRowStatistics, type RowStatistics } from '../row-statistics.js';
import type { KeyTileGroup, KeyTileLimits } from '../structure/key-tile-plan.js';
import { testKeyTiles, type KeyTilesMeasured } from '../structure/key-tile-test.js';
import { measureStructure, type StructurePart } from '../structure/measure-structure.js';
import type { StructureLimits } from '../structure/structure-entries.js';
import { outputGroups, projectionFormat, weightGroups } from '../structure/structure-statistic.js';
import {
  surveyRows,
  surveyWhole,
  type RowSurvey,
  type SurveyedRows,
} from '../structure/survey-rows.js';
import { referenceOfKeys, withListedKeys } from './listed-keys.js';
import type { Part } from './part-plan.js';
import { thinnedReference, thinnedTensors, type Thinning } from './thinning.js';

/** The data that a part is measured from: a problem of its own, and the kernel's outputs for it. */
export interface PartTensors {
  readonly problem: Problem;
  readonly out: GivenQuantity;
  readonly lse: GivenQuantity | null;
}

/** Settings by which all parts of an audit are measured: data that a thread may be sent. */
export interface PartSettings {
  readonly outputFormat: FormatName;
  readonly accuracy: Accuracy;
  readonly premises: Premises;
  readonly arithmetic: KernelArithmetic;
  readonly limits: StructureLimits;
  readonly keyTiles: KeyTileLimits;
  /** The rows that statistics are made of; null for all. */
  readonly thinning: Thinning | null;
  /** The rule by which statistics of rows are made; null where none are made. */
  readonly rows: { readonly maximum: MaximumRule | null } | null;
}

/** The exact values of a part, unless they are known, and a survey of the rows that statistics are made of if asked for. */
interface ReferenceRequest {
  readonly kind: 'reference';
  readonly parts: readonly [Part];
  readonly known: AttentionReference | null;
  readonly withSurvey: boolean;
}

/** The result of a `ReferenceRequest`. */
export interface ReferenceResult {
  readonly reference: AttentionReference;
  readonly survey: RowSurvey | null;
}

/** The structure tests of the rows of a part that statistics are made of: all fields are about those rows. */
interface StructureRequest {
  readonly kind: 'structure';
  readonly parts: readonly [Part];
  readonly reference: AttentionReference;
  /** Null for a part that is all: its rows are surveyed first. */
  readonly surveyed: SurveyedRows | null;
}

/** The result of a `StructureRequest`; places are those of the part. */
export interface StructureMeasured {
  readonly structure: StructurePart;
  readonly rows: RowStatistics | null;
}

/** The bounds of a part's elements. */
interface BoundsRequest {
  readonly kind: 'bounds';
  readonly parts: readonly [Part];
  readonly reference: AttentionReference;
}

/** Some tiles of keys of a head, in blocks of its queries. */
interface KeyTilesRequest {
  readonly kind: 'key-tiles';
  /** The blocks. */
  readonly parts: readonly Part[];
  readonly references: readonly AttentionReference[];
  readonly group: KeyTileGroup;
}

/** Textbook attention in the input format, for the rows that statistics are made of. */
interface YardstickRequest {
  readonly kind: 'yardstick';
  readonly parts: readonly [Part];
}

/** A request to measure some parts. */
export type PartRequest =
  ReferenceRequest | StructureRequest | BoundsRequest | KeyTilesRequest | YardstickRequest;

/** Results by the kind of request: data that a thread may send. */
export interface PartResults {
  readonly reference: ReferenceResult;
  readonly structure: StructureMeasured;
  readonly bounds: MeasuredBounds;
  readonly 'key-tiles': KeyTilesMeasured;
  readonly yardstick: Float64Array;
}

/** Callbacks during a measurement, and memories that its loops work in. */
export interface PartCallbacks {
  readonly progress?: Progress;
  /** See `measureBounds`; rows are those of the part. */
  readonly visitBounds?: RowsBoundVisitor;
  /** Default: memories of each loop's own. */
  readonly memories?: WorkingMemories;
}

/** The bounds of rows, which all measurements of one part share. */
function boundOf(
  { problem }: PartTensors,
  reference: AttentionReference,
  settings: PartSettings,
  memories?: WorkingMemories,
): KernelBound {
  const make = () => {
    const { outputFormat, premises } = settings;
    return {
      problem,
      settings,
      bound: new KernelBound(problem, reference, outputFormat, premises, { memories }),
    };
  };
  const kept = memories?.keep('bounds of rows', reference, make) ?? make();
  const isOfPart = kept.problem === problem && kept.settings === settings;
  return isOfPart ? kept.bound : make().bound;
}

/** The rows of a part that statistics are made of. */
function forStatistics(tensors: PartTensors, { thinning }: PartSettings): PartTensors {
  return thinning === null ? tensors : thinnedTensors(tensors, thinning);
}

function measureReference(
  tensors: PartTensors,
  { known, withSurvey }: ReferenceRequest,
  settings: PartSettings,
  { progress, memories }: PartCallbacks,
): ReferenceResult {
  const { accuracy, premises, thinning } = settings;
  const reference =
    known ??
    attentionOracle(
      tensors.problem,
      progress === undefined ? { accuracy, memories } : { accuracy, memories, progress },
    );
  if (!withSurvey) return { reference, survey: null };
  const ofRows = thinning === null ? reference : thinnedReference(reference, thinning);
  const { problem } = forStatistics(tensors, settings);
  return { reference, survey: surveyRows(problem, ofRows, premises.weightFormat, memories) };
}

function measureErrors(
  tensors: PartTensors,
  { reference, surveyed }: StructureRequest,
  settings: PartSettings,
  { progress, memories }: PartCallbacks,
): StructureMeasured {
  const { problem, out, lse } = tensors;
  const { premises, limits, rows } = settings;
  const meter = rows === null ? null : createRowStatistics(problem, reference, rows.maximum);
  const bound = boundOf(tensors, reference, settings, memories);
  const structure = measureStructure(
    { problem, reference, outputs: { out, lse }, bound, premises, limits },
    surveyed ?? surveyWhole(problem, reference, premises.weightFormat, memories),
    { progress, observer: meter?.visitor, memories },
  );
  return { structure, rows: meter?.statistics ?? null };
}

function measureKeyTiles(
  blocks: readonly PartTensors[],
  { group, references }: KeyTilesRequest,
  settings: PartSettings,
  { memories }: PartCallbacks,
): KeyTilesMeasured {
  const { outputFormat, premises, keyTiles } = settings;
  const measured = blocks.map((tensors, i) => ({
    problem: tensors.problem,
    format: projectionFormat(premises.weightFormat, outputFormat),
    errors: {
      reference: references[i],
      out: tensors.out.values,
      outputFormat,
      bound: boundOf(tensors, references[i], settings, memories),
      groups: outputGroups(outputFormat),
      weightGroups: weightGroups(premises.weightFormat),
    },
  }));
  return testKeyTiles(group, measured, keyTiles, memories);
}

/**
 * Measures the requested quantities of some parts.
 * @param tensors those of the request's parts, in their order
 */
export function measurePart<Request extends PartRequest>(
  request: Request,
  tensors: readonly PartTensors[],
  settings: PartSettings,
  callbacks?: PartCallbacks,
): PartResults[Request['kind']];
export function measurePart(
  request: PartRequest,
  tensors: readonly PartTensors[],
  settings: PartSettings,
  callbacks: PartCallbacks = {},
): PartResults[PartRequest['kind']] {
  const { memories } = callbacks;
  memories?.enter(settings);
  const [first] = tensors;
  if (request.kind === 'key-tiles') return measureKeyTiles(tensors, request, settings, callbacks);
  const problem = withListedKeys(first.problem, settings.arithmetic, memories);
  if (problem === first.problem) return measureRows(request, first, settings, callbacks);
  const listed = { ...first, problem };
  const result = measureRows(withKeysOf(request, problem, memories), listed, settings, callbacks);
  if (!('reference' in result)) return result;
  const { reference, survey } = result;
  return { reference: { ...reference, shape: problemShape(first.problem) }, survey };
}

/** A request about the rows of one part. */
type RowsRequest = Exclude<PartRequest, KeyTilesRequest>;

/** A request about a part as one about a problem of its rows with other keys. */
function withKeysOf(
  request: RowsRequest,
  problem: Problem,
  memories: WorkingMemories | undefined,
): RowsRequest {
  const asOf = (reference: AttentionReference) => referenceOfKeys(reference, problem, memories);
  switch (request.kind) {
    case 'reference':
      return { ...request, known: request.known === null ? null : asOf(request.known) };
    case 'structure':
    case 'bounds':
      return { ...request, reference: asOf(request.reference) };
    case 'yardstick':
      return request;
  }
}

/** Measures the requested quantities of the rows of a part. */
function measureRows(
  request: RowsRequest,
  first: PartTensors,
  settings: PartSettings,
  callbacks: PartCallbacks,
): PartResults[RowsRequest['kind']] {
  const { progress, visitBounds, memories } = callbacks;
  switch (request.kind) {
    case 'reference':
      return measureReference(first, request, settings, callbacks);
    case 'structure':
      return measureErrors(forStatistics(first, settings), request, settings, callbacks);
    case 'bounds': {
      const { reference } = request;
      const bound = boundOf(first, reference, settings, memories);
      return measureBounds(first.problem, reference, settings.arithmetic, bound, {
        memories,
        ...(visitBounds === undefined ? {} : { visit: visitBounds }),
        ...(progress === undefined ? {} : { progress }),
      });
    }
    case 'yardstick': {
      const { problem } = forStatistics(first, settings);
      return yardstickAttention(problem, problemShape(problem), memories);
    }
  }
}
