import { existsSync } from 'node:fs';
import type { AttentionReference } from '../../../oracles/index.js';
import type { ElementBounds, JudgedElements } from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import type { TensorFile } from '../../io/index.js';
import {
  createOutputComparer,
  type SourcedTensor,
  readTensorArgument,
  type TensorReading,
} from '../../jobs/index.js';
import { type Problem, quantities } from '../../problem/index.js';
import type { ComparedOutput } from '../../report/html/index.js';
import type { Provenance } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { AuditCommandOptions } from './options.js';

/** An output that was judged, with the facts for its report. */
export interface JudgedOutput {
  /** Settings for reading the outputs to compare with. */
  readonly reading: TensorReading;
  readonly output: SourcedTensor;
  readonly falseAlarmRate: number;
  readonly provenance: Provenance;
}

/** The comparison of the outputs of --compare with the judged one. */
export interface OutputComparison {
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements: (judged: JudgedElements) => void;
  /**
   * Judges the output of the audit, and behind it the others, each beside it.
   * @throws RequestError for one that cannot be read or does not fit the problem
   */
  readonly compare: (
    problem: Problem,
    file: TensorFile,
    judged: JudgedOutput,
  ) => Promise<readonly ComparedOutput[]>;
}

/** The quantity that is compared: O. */
const [mainQuantity] = quantities;

/** An output to compare with, and its name. */
export interface CompareArgument {
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
export function compareArguments(texts: readonly string[], judged: string): CompareArgument[] {
  const names = new Set([judged]);
  return texts.map((text) => {
    const equals = existsSync(text) ? -1 : text.indexOf('=');
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

/** The name of the judged output beside others. */
function judgedName({ output, exec, kernel, launch }: AuditCommandOptions): string {
  if (kernel !== undefined) return kernel;
  if (exec !== undefined) return 'the live kernel';
  if (launch !== undefined) return 'the compiled kernel';
  const tensor = output?.slice(output.lastIndexOf(':') + 1);
  return tensor === undefined || tensor === '' ? mainQuantity.name : tensor;
}

/**
 * Prepares the comparison of --compare.
 * @throws RequestError for a --compare that does not parse
 */
export function createComparison(options: AuditCommandOptions): OutputComparison {
  const name = judgedName(options);
  const others = compareArguments(options.compare ?? [], name);
  let reference: AttentionReference | null = null;
  const bounds = new Map<FormatName, ElementBounds>();
  const isDeclared =
    options.kernel !== undefined || options.as !== undefined || options.premise !== undefined;
  return {
    onElements: (judged) => {
      reference = judged.reference;
      if (!isDeclared) bounds.set(judged.outputs.out.format, judged.bounds);
    },
    compare: async (problem, file, { output, reading, falseAlarmRate, provenance }) => {
      if (reference === null) return [];
      const compare = createOutputComparer(problem, reference, falseAlarmRate, provenance, bounds);
      const compared = [compare(name, output)];
      for (const { name, output } of others) {
        const read = await readTensorArgument(output, file, mainQuantity, reading);
        compared.push(compare(name, read));
      }
      return compared;
    },
  };
}
