import { RequestError } from '../../request-error.js';
import type { ScalarType, VariableDeclaration } from '../syntax/index.js';

/** The place of a parameter among the parameters of a function. */
export interface ParameterPlace {
  readonly declaration: VariableDeclaration;
  /** Both in bytes. */
  readonly offset: number;
  readonly size: number;
}

/** Bytes of an element of a type. @throws RequestError for predicates and opaque types, which cannot be parameters */
function typeBytes(type: ScalarType): number {
  if (type === 'f16x2' || type === 'bf16x2') return 4;
  const bits = Number(/\d+$/.exec(type)?.[0]);
  if (Number.isInteger(bits)) return bits / 8;
  throw new RequestError(`a parameter of type .${type} cannot be given by a launch file`);
}

/** The least multiple of `alignment`, a power of two, that is not below `offset`. */
export function alignedTo(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}

/** The largest space of parameters (PTX ISA, "Kernel and Function Directives: .entry", since version 8.1). */
const mostBytes = 32764;

/**
 * Lays out the parameters of a kernel in its param space: one behind the other, each aligned as it is declared, or as its
 * type needs (PTX ISA, "Kernel Function Parameters").
 *
 * @throws RequestError for parameters whose size is not known, or which do not fit
 */
export function layParameters(parameters: readonly VariableDeclaration[]): {
  readonly places: readonly ParameterPlace[];
  readonly bytes: number;
} {
  let end = 0;
  const places = parameters.map((declaration) => {
    const { type, vector, dimensions, alignment, name } = declaration;
    const element = typeBytes(type) * vector;
    const size = dimensions.reduce<number>((product, length) => product * (length ?? NaN), element);
    const offset = alignedTo(end, alignment ?? element);
    end = offset + size;
    if (!(end <= mostBytes))
      throw new RequestError(
        `parameter ${name} ends at byte ${end} of the parameters; a kernel has at most ${mostBytes}`,
      );
    return { declaration, offset, size };
  });
  return { places, bytes: end };
}
