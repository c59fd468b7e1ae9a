import {
  auditOutputs,
  compareOutputs,
  sampledQuantity,
  type ElementBounds,
  type JudgedElements,
  type RowSample,
} from '../audit/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import type { FormatName } from '../formats/index.js';
import { quantities, type Problem, type ProblemShape, type Tensor } from '../problem/index.js';
import { createAuditReport, type Provenance } from '../report/json/index.js';
import type { SourcedTensor } from './audit/index.js';
import { gatherPlotData, type ComparedOutput, type PlotData } from '../report/html/index.js';

/** Cells of the one heat map that a compared output has. */
const comparedCells = 6144;

const [mainQuantity] = quantities;

/** An output, or the sampled rows of it where a sample is judged. */
function judgedRows(tensor: Tensor, shape: ProblemShape, sample: RowSample | null): Tensor {
  if (sample === null) return tensor;
  const whole = { ...shape, queries: sample.selection.of };
  return sampledQuantity(mainQuantity, tensor, whole, sample);
}

/** Judges one output after the other of a problem. */
export type OutputComparer = (name: string, output: SourcedTensor) => ComparedOutput;

/**
 * Judges outputs of one problem by the same measure, so that they can stand side by side: as those of any
 * correct kernel, whatever is declared of one of them, against one oracle and bounds that are made once
 * for each output format. LSEs are not judged, nor is the cause of a failure looked for. Each but the first is
 * compared with the first. What it returns throws a RequestError when a tensor does not fit the problem.
 *
 * @param problem the problem whose rows are judged: the whole one, or the sample that the provenance names
 * @param known bounds of any correct kernel that are there already, by output format
 */
export function createOutputComparer(
  problem: Problem,
  reference: AttentionReference,
  falseAlarmRate: number,
  provenance: Provenance,
  known: Iterable<readonly [FormatName, ElementBounds]>,
): OutputComparer {
  const bounds = new Map(known);
  let first: JudgedElements | null = null;
  return (name, { tensor, source }) => {
    const ofFormat = bounds.get(tensor.format);
    let plots: PlotData | undefined;
    let elements: JudgedElements | undefined;
    const onElements = (judged: JudgedElements) => {
      elements = judged;
      bounds.set(tensor.format, judged.bounds);
      plots = gatherPlotData(judged, { maps: 0, cells: comparedCells });
    };
    const audit = auditOutputs(
      problem,
      { out: judgedRows(tensor, reference.shape, provenance.sample ?? null), lse: null },
      {
        reference,
        falseAlarmRate,
        diagnose: false,
        onElements,
        ...(ofFormat === undefined ? {} : { bounds: ofFormat }),
      },
    );
    const report = createAuditReport(problem, audit, {
      ...provenance,
      outputs: { out: source },
      command: null,
    });
    const { outputs } = elements!;
    first ??= elements!;
    // Which rows may err alike is told by the bounds of the first, whatever the format of this one.
    const difference =
      first === elements
        ? null
        : compareOutputs(
            reference,
            {
              unit: first.bounds.unit,
              selection: problem.rows,
              sequences: problem.sequences,
            },
            first.outputs.out.values,
            outputs.out.values,
          );
    return { name, report, plots: plots!, difference };
  };
}
