import type { ResolvedOperand } from '../instructions/index.js';
import type { Operand } from '../syntax/index.js';
import {
  resolveName,
  sharedAddress,
  type ProgramLowering,
  type ScopedInstruction,
} from './lowering.js';

/** An operand with its names resolved; null where a name is unknown or is not an operand, which is collected. */
export function resolveOperand(
  program: ProgramLowering,
  at: ScopedInstruction,
  operand: Operand,
): ResolvedOperand | null {
  const { scope, line } = at;
  const all = (operands: readonly Operand[]): ResolvedOperand[] | null => {
    const resolved = operands.map((one) => resolveOperand(program, at, one));
    return resolved.every((one) => one !== null) ? resolved : null;
  };
  switch (operand.kind) {
    case 'name':
    case 'sum': {
      const { name } = operand;
      const offset = operand.kind === 'sum' ? operand.offset : 0n;
      if (name === 'WARP_SZ') return { kind: 'constant', format: 'integer', bits: 32n };
      const binding = resolveName(program, scope, name);
      if (binding?.kind === 'register' && operand.kind === 'name')
        return { kind: 'register', slot: binding.slot, name };
      if (binding?.kind === 'variable' && binding.space === 'shared') {
        const address = binding.address + Number(offset);
        if (program.sharedAddresses !== null) {
          const slot = sharedAddress(program, program.sharedAddresses, address);
          return { kind: 'register', slot, name };
        }
      }
      if (binding?.kind === 'variable')
        return { kind: 'constant', format: 'integer', bits: BigInt(binding.address) + offset };
      program.unsupported.add(line, name, binding === null ? unknownName(name) : notAnOperand);
      return null;
    }
    case 'integer':
      return { kind: 'constant', format: 'integer', bits: operand.value };
    case 'float':
      return { kind: 'constant', format: operand.format, bits: operand.bits };
    case 'address':
      return resolveAddress(program, at, operand);
    case 'vector':
    case 'list': {
      const elements = all(operand.elements);
      return elements === null ? null : { kind: 'vector', elements };
    }
    case 'pair': {
      const pair = all([operand.first, operand.second]);
      return pair === null ? null : { kind: 'pair', first: pair[0], second: pair[1] };
    }
    case 'negated': {
      const inner = resolveOperand(program, at, operand.operand);
      return inner === null ? null : { kind: 'negated', operand: inner };
    }
    case 'sink':
      return { kind: 'sink' };
  }
}

function unknownName(name: string): string {
  return name.startsWith('%')
    ? 'neither a declared register nor a special register that is known'
    : 'not declared: external variables and functions have to be linked first';
}

const notAnOperand = 'a label, function or parameter as a value needs addresses of code';

function resolveAddress(
  program: ProgramLowering,
  at: ScopedInstruction,
  operand: Extract<Operand, { kind: 'address' }>,
): ResolvedOperand | null {
  const coordinates: ResolvedOperand[][] = [];
  for (const list of operand.coordinates) {
    const resolved = list.map((one) => resolveOperand(program, at, one));
    if (!resolved.every((one) => one !== null)) return null;
    coordinates.push(resolved);
  }
  const offset = Number(operand.offset);
  const { base: name } = operand;
  const address = { kind: 'address', name, coordinates } as const;
  if (name === null) return { ...address, base: null, offset, space: null };
  const binding = resolveName(program, at.scope, name);
  if (binding?.kind === 'register') return { ...address, base: binding.slot, offset, space: null };
  if (
    binding?.kind === 'variable' &&
    binding.space === 'shared' &&
    program.sharedAddresses !== null
  ) {
    const base = sharedAddress(program, program.sharedAddresses, binding.address);
    return { ...address, base, offset, space: 'shared' };
  }
  if (binding?.kind === 'variable')
    return { ...address, base: null, offset: offset + binding.address, space: binding.space };
  program.unsupported.add(at.line, name, binding === null ? unknownName(name) : notAnOperand);
  return null;
}
