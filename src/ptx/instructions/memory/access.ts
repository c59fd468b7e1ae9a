import type { AccessOrder, AccessSpace, MemoryOrder, MemoryScope } from '../../../machine/index.js';
import type { AddressOperand, Unsupported } from '../request.js';

/** The access that the modifiers of an instruction on memory state. */
export interface Access extends AccessOrder {
  /** Null where none is named. */
  readonly space: AccessSpace | null;
  /** Elements of a vector; 1 for a scalar. */
  readonly vector: 1 | 2 | 4 | 8;
  readonly type: ElementType;
  /** Whether a cache policy follows the operands. */
  readonly hasPolicy: boolean;
  /** All other modifiers, in their order: the operation of an atomic, `noftz`. */
  readonly rest: readonly string[];
}

/** A type of elements in memory. */
export interface ElementType {
  readonly name: string;
  readonly bytes: 1 | 2 | 4 | 8 | 16;
  /** Whether a value that is loaded into a wider register is sign-extended. */
  readonly isSigned: boolean;
}

const spaces: Readonly<Record<string, AccessSpace>> = {
  global: 'global',
  shared: 'shared::cta',
  'shared::cta': 'shared::cta',
  'shared::cluster': 'shared::cluster',
  local: 'local',
  const: 'const',
  param: 'param',
  'param::entry': 'param',
};

const orders: Readonly<Record<string, MemoryOrder>> = {
  weak: 'weak',
  relaxed: 'relaxed',
  acquire: 'acquire',
  release: 'release',
  acq_rel: 'acq_rel',
  volatile: 'relaxed',
  mmio: 'relaxed',
};

/** The scopes by name; `membar` has names of its own. */
export const memoryScopes: Readonly<Record<string, MemoryScope>> = {
  cta: 'cta',
  cluster: 'cluster',
  gpu: 'gpu',
  sys: 'sys',
};

const vectors: Readonly<Record<string, 2 | 4 | 8>> = { v2: 2, v4: 4, v8: 8 };

/** Cache operators, eviction priorities and prefetch sizes, which change no value. Source: PTX ISA, "Cache Operators". */
const hints =
  /^(?:ca|cg|cs|cv|lu|wb|wt|nc|unified|(?:L1|L2|level1|level2)::(?!cache_hint).+|L1::no_allocate)$/;
const policy = /::cache_hint$/;
const typeName = /^(?:[bus](?:8|16|32|64|128)|f(?:16|32|64)|bf16|f16x2|bf16x2)$/;

function elementType(name: string): ElementType {
  const bits = name.endsWith('x2') ? 32 : Number(/\d+$/.exec(name)?.[0]);
  return { name, bytes: (bits / 8) as ElementType['bytes'], isSigned: name.startsWith('s') };
}

/**
 * The access that the modifiers of an instruction on memory state, in any order. `volatile` is relaxed for the
 * system, as PTX says; a strong order without a scope is for the GPU.
 */
export function parseAccess(modifiers: readonly string[]): Access | Unsupported {
  let space: AccessSpace | null = null;
  let order: MemoryOrder = 'weak';
  let scope: MemoryScope = 'gpu';
  let vector: Access['vector'] = 1;
  let type: ElementType | null = null;
  let hasPolicy = false;
  const rest: string[] = [];
  for (const modifier of modifiers) {
    if (spaces[modifier] !== undefined) space = spaces[modifier];
    else if (orders[modifier] !== undefined) {
      order = orders[modifier];
      if (modifier === 'volatile' || modifier === 'mmio') scope = 'sys';
    } else if (memoryScopes[modifier] !== undefined) scope = memoryScopes[modifier];
    else if (vectors[modifier] !== undefined) vector = vectors[modifier];
    else if (typeName.test(modifier)) type = elementType(modifier);
    else if (policy.test(modifier)) hasPolicy = true;
    else if (!hints.test(modifier)) rest.push(modifier);
  }
  return type === null
    ? { unsupported: 'a type of elements that is known' }
    : { space, order, scope, vector, type, hasPolicy, rest };
}

const spaceOfVariable = {
  const: 'const',
  global: 'global',
  local: 'local',
  param: 'param',
  shared: 'shared::cta',
} as const;

/** The state space of an address: that of the instruction, or that of the variable, or none. */
export function spaceOf({ space }: Pick<Access, 'space'>, address: AddressOperand): AccessSpace {
  if (space !== null) return space;
  return address.space === null ? 'generic' : spaceOfVariable[address.space];
}
