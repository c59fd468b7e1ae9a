import type { Initialiser, PtxModule, VariableDeclaration } from '../syntax/index.js';
import type { ModuleVariable, PlaceVariable } from './program.js';
import { layOut, type Layout } from './declare.js';
import { alignTo, typeBytes, variableAlignment, variableBytes, type Scope } from './scope.js';
import type { UnsupportedCollector } from './tables.js';

/** Minimum alignment of dynamic shared memory. */
const dynamicAlignment = 16;

/**
 * Gives addresses to the variables of a module that a kernel uses, as names of a scope: those of shared memory in
 * `shared`, others at the addresses from `place`.
 *
 * @param ownShared bytes of shared memory that functions declare themselves, which come after those of the module
 * and before the dynamic part
 * @returns the variables with contents, and the beginning of the dynamic part
 */
export function placeVariables(
  { variables }: PtxModule,
  names: ReadonlySet<string>,
  into: {
    readonly scope: Scope;
    readonly shared: Layout;
    readonly layOutFunctions: (from: Layout) => void;
    readonly place: PlaceVariable;
    readonly unsupported: UnsupportedCollector;
  },
): { readonly placed: readonly ModuleVariable[]; readonly staticSharedBytes: number } {
  const { scope, shared, place, unsupported } = into;
  const needed = closure(variables, names);
  const dynamic: VariableDeclaration[] = [];
  const addresses = new Map<VariableDeclaration, number>();
  for (const variable of needed) {
    const { name, space, linkage } = variable;
    const bytes = variableBytes(variable);
    if (space === 'shared' && (bytes === null || linkage === 'extern')) dynamic.push(variable);
    else if (space === 'shared') scope.bindings.set(name, layOut(shared, variable)!);
    else if (space !== 'global' && space !== 'const')
      unsupported.add(variable.place.line, `.${space} ${name}`, 'module variables of this space');
    else if (linkage === 'extern' || bytes === null)
      unsupported.add(variable.place.line, `.extern ${name}`, 'the module that defines it');
    else {
      const alignment = variableAlignment(variable);
      const address = place({ name, space, bytes, alignment });
      addresses.set(variable, address);
      scope.bindings.set(name, { kind: 'variable', space, address });
    }
  }
  const all = { bytes: shared.bytes };
  into.layOutFunctions(all);
  const alignment = Math.max(dynamicAlignment, ...dynamic.map(variableAlignment));
  const staticSharedBytes = alignTo(all.bytes, dynamic.length > 0 ? alignment : 1);
  for (const { name } of dynamic)
    scope.bindings.set(name, { kind: 'variable', space: 'shared', address: staticSharedBytes });
  const placed = [...addresses].map(([variable, address]) => ({
    name: variable.name,
    space: variable.space as 'global' | 'const',
    address,
    contents: contentsOf(variable, scope, unsupported),
    line: variable.place.line,
  }));
  return { placed, staticSharedBytes };
}

/** The variables of these names, and those whose addresses they hold. */
function closure(
  variables: readonly VariableDeclaration[],
  names: ReadonlySet<string>,
): readonly VariableDeclaration[] {
  const wanted = new Set(names);
  const visit = (initialiser: Initialiser | null): void => {
    if (initialiser?.kind === 'address') wanted.add(initialiser.name);
    if (initialiser?.kind === 'list') initialiser.elements.forEach(visit);
  };
  for (let size = -1; size !== wanted.size;) {
    size = wanted.size;
    for (const { name, initialiser } of variables) if (wanted.has(name)) visit(initialiser);
  }
  return variables.filter(({ name }) => wanted.has(name));
}

/** The bytes of a variable before the kernel starts; zeros where there is no initialiser. */
function contentsOf(
  variable: VariableDeclaration,
  scope: Scope,
  unsupported: UnsupportedCollector,
): Uint8Array {
  const contents = new Uint8Array(variableBytes(variable)!);
  const element = typeBytes(variable.type);
  const { line } = variable.place;
  let next = 0;

  function write(bits: bigint): void {
    for (let i = 0; i < element; i++)
      contents[next + i] = Number(BigInt.asUintN(8, bits >> BigInt(8 * i)));
    next += element;
  }

  /** Number of elements of the innermost dimensions that a list at a depth covers. */
  function extent(depth: number): number {
    const { dimensions, vector } = variable;
    return dimensions.slice(depth).reduce<number>((product, one) => product * one!, vector);
  }

  function fill(initialiser: Initialiser, depth: number): void {
    switch (initialiser.kind) {
      case 'bits':
        write(initialiser.bits);
        break;
      case 'address': {
        const binding = scope.bindings.get(initialiser.name);
        if (binding?.kind !== 'variable' || binding.space === 'shared') {
          unsupported.add(
            line,
            `${variable.name} = ${initialiser.name}`,
            'an address that is known',
          );
          return;
        }
        const address = BigInt(binding.address) + initialiser.offset;
        const { mask } = initialiser;
        write(mask === null ? address : masked(address, mask));
        break;
      }
      case 'list': {
        const start = next;
        for (const one of initialiser.elements) fill(one, depth + 1);
        // A list may be shorter than its dimension.
        next = start + extent(depth) * element;
      }
    }
  }

  if (variable.initialiser !== null) fill(variable.initialiser, 0);
  return contents;
}

/** `0xff00(name)`: the byte of the address that the mask selects (PTX ISA, "Initializers"). */
function masked(address: bigint, mask: bigint): bigint {
  let shift = 0n;
  while (mask !== 0n && ((mask >> shift) & 1n) === 0n) shift++;
  return (address & mask) >> shift;
}
