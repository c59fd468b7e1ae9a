import {
  auditOutputs,
  compareOutputs,
  sampledQuantity,
  type ElementBounds,
  type JudgedElements,
  type RowSample,
} from '../../audit/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import { quantities, type Problem, type ProblemShape, type Tensor } from '../../problem/index.js';
import type { TensorFiles } from '../../io/tensors/index.js';
import { gatherPlotData, type ComparedOutput, type PlotData } from '../../report/html/index.js';
import { createAuditReport, type Provenance } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { AuditResult } from './audit-kernel.js';
import type { AuditSettings } from './audit-settings.js';
import type { OpenProblem } from './kernel-source.js';
import { readTensorArgument, type JudgedOutputs, type SourcedTensor } from './read-outputs.js';

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

/** An output to compare with, and its name. */
interface CompareArgument {
  readonly name: string;
  /** The output in the form of `--output`: `<file>[:<tensor>]`. */
  readonly output: string;
}

/** The name of an output without a given one: its tensor, or its file. */
function defaultName(output: string): string {
  const tensor = output.slice(output.lastIndexOf(':') + 1);
  return tensor === '' ? output : tensor;
}

/**
 * The outputs that --compare options name, as `[<name>=]<file>[:<tensor>]`, split at the first equals
 * sign unless the whole of it is an existing path.
 *
 * @param judged the name of the output that the report is of
 * @throws RequestError for an argument without a file or tensor, and for a name given twice
 */
export function compareArguments(
  texts: readonly string[],
  judged: string,
  files: TensorFiles,
): CompareArgument[] {
  const names = new Set([judged]);
  return texts.map((text) => {
    const equals = files.has(text) ? -1 : text.indexOf('=');
    const output = text.slice(equals + 1);
    const name = equals < 1 ? defaultName(output) : text.slice(0, equals);
    if (equals === 0 || output === '' || output === ':')
      throw new RequestError(
        `--compare is ${JSON.stringify(text)}; give [<name>=]<file>[:<tensor>], an empty file meaning the problem file`,
      );
    if (names.has(name))
      throw new RequestError(
        `two outputs are called ${JSON.stringify(name)}; give this one a name of its own: --compare <name>=${output}`,
      );
    names.add(name);
    return { name, output };
  });
}

interface OutputComparison {
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements: (judged: JudgedElements) => void;
  /**
   * Judges the output of the audit, and behind it the others, each beside it.
   * @throws RequestError for one that cannot be read or does not fit the problem
   */
  readonly compare: (
    open: OpenProblem,
    judged: JudgedOutputs,
    result: AuditResult,
  ) => Promise<readonly ComparedOutput[]>;
}

/**
 * Prepares the comparison of --compare; null where none is asked for.
 * @throws RequestError for a --compare that does not parse
 */
export function createComparison(
  { source, output: place = '', kernel, as, premise, ...settings }: AuditSettings,
  files: TensorFiles,
): OutputComparison | null {
  if (settings.compare === undefined) return null;
  const tensor = place.slice(place.lastIndexOf(':') + 1);
  const name = source?.name ?? (tensor === '' ? mainQuantity.name : tensor);
  const others = compareArguments(settings.compare, name, files);
  const bounds = new Map<FormatName, ElementBounds>();
  const isDeclared = [kernel, as, premise].some((one) => one !== undefined);
  return {
    onElements: (judged) => {
      if (!isDeclared) bounds.set(judged.outputs.out.format, judged.bounds);
    },
    compare: async ({ file, reading }, { outputs, sources }, { problem, reference, origin }) => {
      const { falseAlarmRate } = settings;
      const compare = createOutputComparer(problem, reference, falseAlarmRate, origin, bounds);
      const compared = [compare(name, { tensor: outputs.out, source: sources.out })];
      for (const { name, output } of others)
        compared.push(compare(name, await readTensorArgument(output, file, mainQuantity, reading)));
      return compared;
    },
  };
}
