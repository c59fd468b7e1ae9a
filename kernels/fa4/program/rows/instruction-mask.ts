import {
  createRegisters,
  immediate,
  immediateFloat32,
  register,
  type Issuer,
  type Operand,
  type WarpRegisters,
} from './issuer.js';
import type { VisibleColumns } from './row-arithmetic.js';

/** Columns whose bits one word of the mask holds. */
const wordColumns = 32;

const zero = immediate(0);
const allBits = immediate(0xffffffff);
const minusInfinity = immediateFloat32(-Infinity);
const columnBits = Array.from({ length: wordColumns }, (_, i) => immediate((1 << i) >>> 0));

/** Limits of the lanes as registers. */
function limitRegisters(limits: Int32Array): WarpRegisters {
  const registers = createRegisters(1);
  registers.words.set(limits);
  return registers;
}

/**
 * Puts −∞ in place of the scores that a row does not see: for every 32 columns a word with the bits of
 * those below the upper limit and, where there is one, not below the lower limit; then a choice for
 * each column. Shifts by more than 31 leave 0. Source: `mask_r2p_lambda`, `r2p_bitmask_below` and
 * `r2p_bitmask_above` in flash_attn/cute/mask.py of Dao-AILab/flash-attention.
 */
export function maskRow(
  { issue }: Issuer,
  row: WarpRegisters,
  { begin, end }: VisibleColumns,
): void {
  const scratch = createRegisters(3);
  const [mask, bits, chosen] = [0, 1, 2].map((i) => register(scratch, i)) as [
    Operand,
    Operand,
    Operand,
  ];
  const upper = register(limitRegisters(end), 0);
  const lower = begin === null ? null : register(limitRegisters(begin), 0);
  for (let first = 0; first < row.registersPerLane; first += wordColumns) {
    issue('sub.s32', bits, [immediate(first + wordColumns), upper]);
    issue('max.s32', bits, [bits, zero]);
    issue('shr.u32', mask, [allBits, bits]);
    if (lower !== null) {
      issue('sub.s32', bits, [lower, immediate(first)]);
      issue('max.s32', bits, [bits, zero]);
      issue('shl.b32', bits, [allBits, bits]);
      issue('and.b32', mask, [mask, bits]);
    }
    columnBits.forEach((bit, i) => {
      const score = register(row, first + i);
      issue('and.b32', bits, [mask, bit]);
      issue('setp.ne.s32', chosen, [bits, zero]);
      issue('selp.f32', score, [score, minusInfinity, chosen]);
    });
  }
}
