import {
  type DeclaredFormats,
  namesRead,
  openTensorArgument,
  ownTensor,
  printable,
  type ProblemSettings,
  type TensorFile,
  toHeadsFirst,
  unusedInputs,
} from '../../io/index.js';
import type { SourcedTensor } from '../../jobs/index.js';
import { gatherOutput, type Problem, type Quantity } from '../../problem/index.js';

/** Whether `<file>[:<tensor>]` is in the problem's own file. */
export function namesOwnFile(text: string): boolean {
  return ownTensor(text, '') !== null;
}

/** How the tensors of a problem's file, and those beside it, are read. */
export interface TensorReading {
  readonly formats: DeclaredFormats;
  /** Whether an output is [batch, heads, seqlen, dim], as the problem is. */
  readonly headsFirst: boolean;
  /** Outputs of packed sequences lie as its queries do. */
  readonly problem: Problem;
}

/**
 * An output in its canonical shape.
 * @throws RequestError for a shape that an output of packed sequences cannot have
 */
export function canonicalOutput(
  tensor: SourcedTensor['tensor'],
  quantity: Quantity,
  { headsFirst, problem }: TensorReading,
): SourcedTensor['tensor'] {
  if (problem.sequences !== undefined) return gatherOutput(problem, quantity, tensor);
  return quantity.row === 'vector' && !headsFirst ? toHeadsFirst(tensor) : tensor;
}

/**
 * Reads what `<file>[:<tensor>]` names, as it lies there.
 * @param fallback its name where only a file is named that holds several tensors
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readStoredArgument(
  argument: string,
  problemFile: TensorFile,
  fallback: string,
  formats: DeclaredFormats,
): Promise<SourcedTensor> {
  const chosen = await openTensorArgument(argument, problemFile, fallback, formats);
  try {
    const tensor = await chosen.file.read(chosen.name);
    return {
      tensor,
      source: {
        path: chosen.file.path,
        tensor: chosen.name,
        sha256: await chosen.file.sha256(chosen.name),
        format: tensor.format,
      },
    };
  } finally {
    await chosen.close();
  }
}

/**
 * Reads what `<file>[:<tensor>]` names; an output that lies as the problem does becomes [batch, heads, seqlen, dim].
 *
 * @param quantity what it is, whose name it has where only a file is named that holds several tensors
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readTensorArgument(
  argument: string,
  problemFile: TensorFile,
  quantity: Quantity,
  reading: TensorReading,
): Promise<SourcedTensor> {
  const { name } = quantity;
  const { tensor, source } = await readStoredArgument(argument, problemFile, name, reading.formats);
  return { tensor: canonicalOutput(tensor, quantity, reading), source };
}

/** A line on stderr that names inputs of attention which the file holds and nothing reads; or nothing. */
export function warnOfUnusedInputs(file: TensorFile, settings: ProblemSettings): void {
  const { ofAttention } = unusedInputs(file, namesRead(file, settings));
  if (ofAttention.length === 0) return;
  const names = ofAttention.map(printable).join(', ');
  process.stderr.write(
    `warning: ${printable(file.path)}: not used: ${names}; attention is computed without\n`,
  );
}
