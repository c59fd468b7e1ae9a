import { RequestError } from '../../../request-error.js';
import { printable } from '../messages.js';
import type { TensorFile, TensorFiles } from '../tensor-file.js';

/** A tensor named as `<file>[:<tensor>]`; an empty file is the problem's own. */
interface TensorArgument {
  readonly file: string;
  /** The tensor's name; null when only a file was named. */
  readonly tensor: string | null;
}

/** Splits `<file>[:<tensor>]` at its last colon, unless the whole of it is an existing path. */
function parseTensorArgument(text: string, files: TensorFiles): TensorArgument {
  const colon = text.lastIndexOf(':');
  if (colon < 0 || (text !== '' && files.has(text))) return { file: text, tensor: null };
  const tensor = text.slice(colon + 1);
  return { file: text.slice(0, colon), tensor: tensor === '' ? null : tensor };
}

/** The tensor of the problem's own file that `<file>[:<tensor>]` names; null where it names another file. */
export function ownTensor(text: string, files: TensorFiles, fallback: string): string | null {
  const { file, tensor } = parseTensorArgument(text, files);
  return file === '' ? (tensor ?? fallback) : null;
}

/** The tensor an argument means: the one it names, else `fallback` if there, else the only one. */
function chooseTensor(file: TensorFile, argument: TensorArgument, fallback: string): string {
  if (argument.tensor !== null) return argument.tensor;
  if (file.entries.has(fallback)) return fallback;
  const names = [...file.entries.keys()];
  if (names.length === 1) return names[0];
  throw new RequestError(
    `${printable(file.path)}: holds ${names.length} tensors and none is called "${fallback}"; name one as ${argument.file}:<tensor>`,
  );
}

/** An open file with the tensor chosen in it; `close` leaves the problem's own file open. */
export interface ChosenTensor {
  readonly file: TensorFile;
  readonly name: string;
  readonly close: () => Promise<void>;
}

/**
 * Opens the tensor that `<file>[:<tensor>]` names.
 * @param fallback the tensor that is meant where only a file is named that holds several
 * @throws RequestError when the file cannot be read or the choice of the tensor is not clear
 */
export async function openTensorArgument(
  text: string,
  problemFile: TensorFile,
  fallback: string,
): Promise<ChosenTensor> {
  const argument = parseTensorArgument(text, problemFile.beside);
  if (argument.file === '')
    return {
      file: problemFile,
      name: chooseTensor(problemFile, argument, fallback),
      close: async () => {},
    };
  const file = await problemFile.beside.open(argument.file, {});
  try {
    return { file, name: chooseTensor(file, argument, fallback), close: file.close };
  } catch (error) {
    await file.close();
    throw error;
  }
}
