import { RequestError } from '../../request-error.js';
import type { DeclaredFormats } from './dtype.js';
import { listed, tensorIn } from './messages.js';
import type { TensorFile } from './tensor-file.js';

/** A tensor file whose declared formats hold for the tensors of all files that are opened beside it, too. */
export interface DeclaringFile extends TensorFile {
  /**
   * Checks that each declared tensor is in one of the files opened so far.
   * @throws RequestError naming one that is in none, and the tensors that there are
   */
  readonly checkDeclared: () => void;
}

/** The declarations that are of the tensors of a file. */
export function declaredIn(file: TensorFile, formats: DeclaredFormats): DeclaredFormats {
  return Object.fromEntries(Object.entries(formats).filter(([name]) => file.entries.has(name)));
}

/**
 * A file that was opened with formats which may be those of other files, as one that opens these with the same.
 * @param file opened with `formats` and `isOneOfSeveral`
 */
export function declaringFile(file: TensorFile, formats: DeclaredFormats): DeclaringFile {
  const names = new Set(file.entries.keys());
  const { beside } = file;
  return {
    ...file,
    beside: {
      has: beside.has,
      open: async (path, options) => {
        const other = await beside.open(path, { formats, isOneOfSeveral: true, ...options });
        for (const name of other.entries.keys()) names.add(name);
        return other;
      },
    },
    checkDeclared: () => {
      const unmet = Object.keys(formats).find((name) => !names.has(name));
      if (unmet === undefined) return;
      throw new RequestError(
        `${tensorIn(file.path, unmet)}: a format is declared for it, but there is no such tensor here or in ` +
          `another file that is read; there are ${listed(names) || 'none'}`,
      );
    },
  };
}
