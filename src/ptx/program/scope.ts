import type { AddressSpace, RegisterWidth, Slot } from '../instructions/index.js';
import type { ScalarType, VariableDeclaration } from '../syntax/index.js';
import type { ParameterPieces, SlotAllocator } from './parameter-pieces.js';

/** The meaning of a name. */
export type Binding =
  | { readonly kind: 'register'; readonly slot: Slot }
  /** A variable with its address in its state space. */
  | { readonly kind: 'variable'; readonly space: AddressSpace; readonly address: number }
  /** A parameter of a function or of a call. */
  | { readonly kind: 'parameter'; readonly pieces: ParameterPieces }
  | { readonly kind: 'label'; readonly label: number }
  | { readonly kind: 'targets'; readonly labels: readonly string[] };

/** The names of a function or of a block in it, and of the scopes around it. */
export interface Scope {
  readonly outer: Scope | null;
  readonly bindings: Map<string, Binding>;
  /** `%r<10>`: families of registers by the name before the number. */
  readonly families: Map<string, { readonly count: number; readonly width: RegisterWidth }>;
}

export function createScope(outer: Scope | null): Scope {
  return { outer, bindings: new Map(), families: new Map() };
}

/** Finds a name in a scope or around it; a register of a family gets its place on first use. */
export function findBinding(scope: Scope, name: string, slots: SlotAllocator): Binding | null {
  for (let at: Scope | null = scope; at !== null; at = at.outer) {
    const binding = at.bindings.get(name);
    if (binding !== undefined) return binding;
    const [, prefix, number] = /^(.*?)(0|[1-9][0-9]*)$/.exec(name) ?? [];
    const family = prefix === undefined ? undefined : at.families.get(prefix);
    if (family !== undefined && Number(number) < family.count) {
      const register: Binding = { kind: 'register', slot: slots.allocate(family.width) };
      at.bindings.set(name, register);
      return register;
    }
  }
  return null;
}

/** Bytes of one element of a type. */
export function typeBytes(type: ScalarType): number {
  if (type === 'pred') return 1;
  if (type.endsWith('x2')) return 4;
  if (type.endsWith('ref')) return 8;
  return Number(/[0-9]+$/.exec(type)![0]) / 8;
}

/** The width of a register of a type. */
export function registerWidth(type: ScalarType): RegisterWidth {
  if (type === 'pred') return 'pred';
  const bits = 8 * typeBytes(type);
  return bits <= 16 ? 16 : (bits as 32 | 64 | 128);
}

/** Bytes of a variable; null for an array with an unstated dimension. */
export function variableBytes({ type, vector, dimensions }: VariableDeclaration): number | null {
  let bytes = typeBytes(type) * vector;
  for (const dimension of dimensions) {
    if (dimension === null) return null;
    bytes *= dimension;
  }
  return bytes;
}

/** The alignment of a variable in bytes: the stated one, or that of its element. */
export function variableAlignment({ type, vector, alignment }: VariableDeclaration): number {
  return alignment ?? typeBytes(type) * vector;
}

/** The first multiple of an alignment that is not below an offset. */
export function alignTo(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}
