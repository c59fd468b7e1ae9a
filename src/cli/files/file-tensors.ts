import { existsSync } from 'node:fs';
import {
  type DeclaredFormats,
  openTensorFile,
  printable,
  type TensorFile,
  toHeadsFirst,
  unusedInputs,
} from '../../io/index.js';
import type { SourcedTensor } from '../../jobs/index.js';
import type { Quantity } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';

/** A tensor named on the command line as `<file>[:<tensor>]`; an empty file is the problem's own. */
interface TensorArgument {
  readonly file: string;
  /** Null when only a file was named. */
  readonly tensor: string | null;
}

/** Splits `<file>[:<tensor>]` at its last colon, unless the whole of it is an existing path. */
function parseTensorArgument(text: string): TensorArgument {
  const colon = text.lastIndexOf(':');
  if (colon < 0 || (text !== '' && existsSync(text))) return { file: text, tensor: null };
  const tensor = text.slice(colon + 1);
  return { file: text.slice(0, colon), tensor: tensor === '' ? null : tensor };
}

/** Whether `<file>[:<tensor>]` is in the problem's own file. */
export function namesOwnFile(text: string): boolean {
  return parseTensorArgument(text).file === '';
}

/** The tensor an argument means: the one it names, else `fallback` if there, else the only one. */
function chooseTensor(file: TensorFile, argument: TensorArgument, fallback: string): string {
  if (argument.tensor !== null) return argument.tensor;
  if (file.entries.has(fallback)) return fallback;
  const names = [...file.entries.keys()];
  if (names.length === 1) return names[0];
  throw new RequestError(
    `${file.path}: holds ${names.length} tensors and none is called "${fallback}"; name one as ${argument.file}:<tensor>`,
  );
}

/** An open file with the tensor chosen in it; `close` leaves the problem's own file open. */
interface ChosenTensor {
  readonly file: TensorFile;
  readonly name: string;
  readonly close: () => Promise<void>;
}

/**
 * Opens what a tensor argument names.
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
async function openTensorArgument(
  text: string,
  problemFile: TensorFile,
  fallback: string,
  formats: DeclaredFormats,
): Promise<ChosenTensor> {
  const argument = parseTensorArgument(text);
  if (argument.file === '')
    return {
      file: problemFile,
      name: chooseTensor(problemFile, argument, fallback),
      close: async () => {},
    };
  const file = await openTensorFile(argument.file, { formats });
  try {
    return { file, name: chooseTensor(file, argument, fallback), close: file.close };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** How the tensors of a problem's file, and those beside it, are read. */
export interface TensorReading {
  readonly formats: DeclaredFormats;
  /** Whether an output is [batch, heads, seqlen, dim], as the problem is. */
  readonly headsFirst: boolean;
}

/**
 * Reads what `<file>[:<tensor>]` names; an output in the problem's layout becomes [batch, heads, seqlen, dim].
 *
 * @param quantity what it is, whose name it has where only a file is named that holds several tensors
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function readTensorArgument(
  argument: string,
  problemFile: TensorFile,
  { name, row }: Pick<Quantity, 'name' | 'row'>,
  { formats, headsFirst }: TensorReading,
): Promise<SourcedTensor> {
  const chosen = await openTensorArgument(argument, problemFile, name, formats);
  try {
    const tensor = await chosen.file.read(chosen.name);
    return {
      tensor: row === 'vector' && !headsFirst ? toHeadsFirst(tensor) : tensor,
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

/** A line on stderr that names inputs of attention which the file holds and nothing reads; or nothing. */
export function warnOfUnusedInputs(file: TensorFile): void {
  const { ofAttention } = unusedInputs(file);
  if (ofAttention.length === 0) return;
  const names = ofAttention.map(printable).join(', ');
  process.stderr.write(
    `warning: ${printable(file.path)}: not used: ${names}; attention is computed without\n`,
  );
}
