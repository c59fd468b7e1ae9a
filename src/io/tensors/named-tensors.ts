import { formats } from '../../formats/index.js';
import type { StoredTensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { DeclaredFormats } from './dtype.js';
import { arrayNameOf, isArrayOf, writtenType } from './element-storage.js';
import { listed, quoted, tensorIn } from './messages.js';
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

/** The most dimensions a tensor may have. Attention uses at most five. */
export const maxRank = 32;

/**
 * The number of elements of a shape whose dimensions are non-negative safe integers: their product,
 * 1 for a scalar. Null when the product of the dimensions other than zero is no safe integer.
 */
export function elementCount(shape: readonly number[]): number | null {
  let product = 1;
  let empty = false;
  for (const dimension of shape) {
    if (dimension === 0) empty = true;
    else product *= dimension;
    if (product > Number.MAX_SAFE_INTEGER) return null;
  }
  return empty ? 0 : product;
}

/**
 * A dimension as a file spells it: digits without sign, fraction or exponent, whose value is a safe
 * integer. Null for everything else.
 */
export function dimensionOf(spelling: string): number | null {
  if (!/^(0|[1-9][0-9]*)$/.test(spelling)) return null;
  const value = Number(spelling);
  return Number.isSafeInteger(value) ? value : null;
}

/** Tensors to be written, by name. */
export type NamedTensors =
  Readonly<Record<string, StoredTensor>> | ReadonlyMap<string, StoredTensor>;

/**
 * Checks that a tensor about to be written is one: a known format, or integers or truths, a shape of non-negative
 * safe integers, a typed array of the right kind with as many elements as the shape has.
 * @throws RequestError naming the tensor
 */
export function checkTensor(name: string, tensor: StoredTensor): void {
  const { shape, data } = tensor;
  const type = writtenType(tensor);
  const refuse = (what: string): never => {
    throw new RequestError(`tensor ${quoted(name)} cannot be written: ${what}`);
  };
  if ('format' in tensor && !Object.hasOwn(formats, tensor.format))
    refuse(
      `format ${quoted(String(tensor.format))} is unknown; use one of ${Object.keys(formats).join(', ')}`,
    );
  if (shape.length > maxRank) refuse(`rank ${shape.length} is above ${maxRank}; reshape it`);
  const spelled = `shape [${shape.join(', ')}]`;
  if (!shape.every((dimension) => Number.isSafeInteger(dimension) && dimension >= 0))
    refuse(`${spelled} is not made of non-negative whole numbers; correct it`);
  if (!isArrayOf(type, data))
    refuse(`elements of format ${type} must be kept in a ${arrayNameOf(type)}; convert them`);
  const expected = elementCount(shape);
  if (data.length !== expected)
    refuse(
      `${spelled} needs ${expected ?? 'too many'} elements, but the array has ${data.length}; ` +
        'make them agree',
    );
}

/**
 * The tensors with their names, each checked.
 * @throws RequestError naming the first that cannot be written
 */
export function checkedTensors(tensors: NamedTensors): [string, StoredTensor][] {
  const isMap = (given: NamedTensors): given is ReadonlyMap<string, StoredTensor> =>
    given instanceof Map;
  const named = isMap(tensors) ? [...tensors] : Object.entries(tensors);
  for (const [name, tensor] of named) checkTensor(name, tensor);
  return named;
}
