import type { Slot } from '../instructions/index.js';
import type { Operand, PtxInstruction } from '../syntax/index.js';
import { stretch } from './block-builder.js';
import { resolveName, type ProgramLowering } from './lowering.js';
import type { LaneStretch, WatchedRegister } from './program.js';
import type { Scope } from './scope.js';

/** Types as modifiers spell them. */
const typeName =
  /^(?:[bus](?:8|16|32|64|128)|f(?:16|32|64)|bf16|f16x2|bf16x2|tf32|e4m3|e5m2|pred)$/;

/** Names of registers in an operand, and whether one is an address. */
function namesIn(operand: Operand): readonly { readonly name: string; isAddress: boolean }[] {
  switch (operand.kind) {
    case 'name':
      return [{ name: operand.name, isAddress: false }];
    case 'address':
      return [
        ...(operand.base === null ? [] : [{ name: operand.base, isAddress: true }]),
        ...operand.coordinates.flat().flatMap(namesIn),
      ];
    case 'vector':
    case 'list':
      return operand.elements.flatMap(namesIn);
    case 'pair':
      return [...namesIn(operand.first), ...namesIn(operand.second)];
    case 'negated':
      return namesIn(operand.operand);
    default:
      return [];
  }
}

const bitsOf = (type: string): number =>
  type.endsWith('x2') ? 32 : Number(/[0-9]+$/.exec(type)?.[0] ?? 32);

/** The type that an instruction gives a register of this width, where its modifiers name a type for the operand. */
function typeOf({ width }: Slot, named: string | undefined, isAddress: boolean): string {
  if (width === 'pred') return 'pred';
  if (isAddress) return `u${width}`;
  if (named === undefined || named === 'pred') return `b${width}`;
  if (bitsOf(named) === width) return named;
  // A register of an MMA holds two numbers of a half format, and one of tf32.
  if (width === 32 && (named === 'f16' || named === 'bf16')) return `${named}x2`;
  if (width === 32 && named === 'tf32') return 'f32';
  // `mul.wide.s32` gives 64 bits, a load of 8 bits fills 16.
  return /^[us]/.test(named) ? `${named[0]}${width}` : `b${width}`;
}

/**
 * The type of each operand of an instruction by its modifiers. A single type is that of all operands; the first of two is the
 * destination's; an MMA names D, A, B and C.
 */
function namedType(types: readonly string[], operand: number): string | undefined {
  if (types.length <= 1) return types[0];
  return types[Math.min(operand, types.length - 1)];
}

/** The registers of an instruction in the order of its text, each once. */
export function watchedRegisters(
  program: ProgramLowering,
  { guard, modifiers, operands }: PtxInstruction,
  scope: Scope,
): readonly WatchedRegister[] {
  const types = modifiers.filter((modifier) => typeName.test(modifier));
  const found = new Map<string, WatchedRegister>();
  const add = (name: string, isGuard: boolean, typeIn: (slot: Slot) => string): void => {
    const binding = resolveName(program, scope, name);
    if (binding?.kind !== 'register' || found.has(name)) return;
    const { slot } = binding;
    found.set(name, { name, slot, type: typeIn(slot), isGuard });
  };
  if (guard !== null) add(guard.predicate, true, () => 'pred');
  for (const [i, operand] of operands.entries())
    for (const { name, isAddress } of namesIn(operand))
      add(name, false, (slot) => typeOf(slot, namedType(types, i), isAddress));
  return [...found.values()];
}

/** Divides a stretch so that each part begins at a watched line, or at the beginning. */
export function splitStretch(
  whole: LaneStretch,
  isWatched: (line: number) => boolean,
): readonly LaneStretch[] {
  const { operations } = whole;
  const starts = operations.flatMap(({ line }, i) =>
    i > 0 && line !== operations[i - 1].line && isWatched(line) ? [i] : [],
  );
  if (starts.length === 0) return [whole];
  return [0, ...starts].map((from, i) => stretch(operations.slice(from, starts[i])));
}
