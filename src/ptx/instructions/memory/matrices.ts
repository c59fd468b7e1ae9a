import { createByteStore } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { gatherFragment, scatterFragment } from '../warp-registers.js';
import { slotsOf, vectorSlots, wrongOperands } from '../operands.js';
import { parseAccess } from './access.js';
import { lanePlaces } from './loads-and-stores.js';

const matrixCounts: Readonly<Record<string, 1 | 2 | 4>> = { x1: 1, x2: 2, x4: 4 };
const rowBytes = 16;

function lowerMatrix({
  opcode,
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess(modifiers);
  if ('unsupported' in access) return access;
  const op = opcode === 'ldmatrix' ? 'ldmatrix' : 'stmatrix';
  const count = modifiers
    .map((modifier) => matrixCounts[modifier])
    .find((one) => one !== undefined);
  if (!modifiers.includes('m8n8') || access.type.name !== 'b16')
    return { unsupported: `matrices other than m8n8 of b16` };
  const [first, second] = operands;
  const [address, registers] = op === 'ldmatrix' ? [second, first] : [first, second];
  if (address?.kind !== 'address' || registers === undefined || count === undefined)
    return wrongOperands('an address and registers, and a number of matrices');
  const slots = vectorSlots(registers);
  if (slots?.length !== count || slots.some(({ width }) => width !== 32))
    return wrongOperands(`${count} registers of 32 bits`);
  const isTransposed = modifiers.includes('trans');
  const isLoad = op === 'ldmatrix';
  return {
    isAligned: true,
    writes: isLoad ? slots : [],
    reads: [...slotsOf([address]), ...(isLoad ? [] : slots)],
    lends: [],
    issue: function* (warp) {
      const rows = lanePlaces(warp, address, access, rowBytes);
      const data = isLoad ? createByteStore(32 * 4 * count) : gatherFragment(warp.registers, slots);
      yield { op, rows, matrices: count, isTransposed, data, site };
      if (isLoad) scatterFragment(warp.registers, slots, data, warp.lanes);
    },
  };
}

/** Matrices between shared memory and the registers of a warp. */
export const matrixRows: readonly VisibleInstruction[] = ['ldmatrix', 'stmatrix'].map((name) => ({
  name,
  meaning: 'moves',
  evidence: 'isa',
  source: `PTX ISA, "${name}"`,
  lower: lowerMatrix,
}));
