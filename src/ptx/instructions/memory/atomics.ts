import type { AtomicOperation, AtomicType } from '../../../machine/index.js';
import { createByteStore, hasAtomic } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { elementsOf, slotsOf, wrongOperands } from '../operands.js';
import { parseAccess } from './access.js';
import { packLanes, unpackLanes } from './lane-data.js';
import { lanePlaces } from './loads-and-stores.js';

const operations: ReadonlySet<string> = new Set<AtomicOperation>([
  ...(['and', 'or', 'xor', 'exch', 'cas', 'add', 'inc', 'dec', 'min', 'max'] as const),
]);

/** Modifiers besides the operation and the access that do not change the machine's results. */
const implied = new Set(['noftz']);

function isOperation(name: string): name is AtomicOperation {
  return operations.has(name);
}

function lowerAtomic({
  opcode,
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess(modifiers);
  if ('unsupported' in access) return access;
  const op = opcode === 'atom' ? 'atom' : 'red';
  const [operation, ...others] = access.rest.filter((modifier) => !implied.has(modifier));
  const type = access.type.name as AtomicType;
  if (operation === undefined || !isOperation(operation) || others.length > 0)
    return { unsupported: `.${access.rest.join('.')} of an atomic operation` };
  if (!hasAtomic(operation, type))
    return { unsupported: `an atomic ${operation} of ${type}, which PTX has not` };
  const given = access.hasPolicy ? operands.slice(0, -1) : operands;
  const [destination, address, first, second] =
    op === 'atom' ? given : [{ kind: 'sink' } as const, ...given];
  const isCompare = operation === 'cas';
  const takes = `${op === 'atom' ? 'd, ' : ''}[a], b${isCompare ? ', c' : ''}`;
  if (address?.kind !== 'address' || first === undefined || (second !== undefined) !== isCompare)
    return wrongOperands(takes);
  const stored = elementsOf(isCompare ? second! : first);
  if (stored.length !== access.vector) return wrongOperands(takes);
  const { scope, type: element } = access;
  return {
    isAligned: false,
    writes: slotsOf([destination]),
    reads: slotsOf(given.slice(op === 'atom' ? 1 : 0)),
    lends: [],
    issue: function* (warp) {
      const { registers, lanes } = warp;
      const places = lanePlaces(warp, address, access, stored.length * element.bytes);
      const data = packLanes(registers, stored, element, lanes);
      const compared = isCompare ? packLanes(registers, [first], element, lanes) : null;
      const result = op === 'atom' ? createByteStore(data.bytes.length) : null;
      yield {
        op,
        ...places,
        order: access.order === 'weak' ? 'relaxed' : access.order,
        scope,
        operation,
        type,
        elements: stored.length,
        operands: data,
        compared,
        result,
        site,
      };
      if (result !== null && destination !== undefined)
        unpackLanes(registers, elementsOf(destination), element, { data: result, lanes });
    },
  };
}

/** Atomic operations; without modifiers they are relaxed, for the GPU. */
export const atomicRows: readonly VisibleInstruction[] = (
  [
    ['atom', ['moves', 'is', 'chooses', 'confirmed']],
    ['red', ['is', 'chooses', 'confirmed']],
  ] as const
).map(([name, meaning]) => ({
  name,
  meaning,
  evidence: 'isa',
  source: `PTX ISA, "${name}"`,
  lower: lowerAtomic,
}));
