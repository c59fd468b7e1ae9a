import { type CtaCounters, smRates } from '../../machine/index.js';
import type { Architecture } from '../../hardware/index.js';
import type { ExecutionCounts } from './execution-counts.js';

/** A unit whose work on an SM is counted. */
type WorkUnit = 'tensor core' | 'MUFU' | 'FMA' | 'shared memory' | 'issue';

/** The work of a unit, and the time that it takes an SM at the unit's full rate. */
interface UnitWork {
  readonly unit: WorkUnit;
  readonly amount: number;
  readonly measure: 'FLOP' | 'lane operations' | 'bytes' | 'warp instructions';
  /** Clocks of one SM, as if it ran all CTAs one after the other. */
  readonly clocks: number;
}

/** The work of a run on the units of an SM. */
export interface WorkOfUnits {
  /** Only units with work; the order of the units is always the same. */
  readonly lines: readonly UnitWork[];
  /** FLOP of MMAs whose operands have no rate. */
  readonly unratedFlops: number;
}

/** Warps that execute one wgmma together. */
const warpgroupWarps = 4;

/** The bits of an element of A by its type, those of the byte that it has; others have no rate. */
const operandBits: Readonly<Record<string, 32 | 16 | 8>> = {
  tf32: 32,
  f16: 16,
  bf16: 16,
  e4m3: 8,
  e5m2: 8,
  e2m3: 8,
  e3m2: 8,
  e2m1: 8,
  s8: 8,
  u8: 8,
};

/** Sparse products, and those of two elements to a byte, have no rate here. */
const isUnrated = /^mma\.sp|\.kind::mxf4(?:nvf4)?\b/;

/**
 * Number of floating-point operations (two for a product and its sum) of a warp that executes an MMA on registers; null
 * for other instructions.
 */
export function mmaOf(
  mnemonic: string,
): { readonly flops: number; readonly bits: 32 | 16 | 8 | null } | null {
  const match =
    /^(mma(?:\.sp(?:::ordered_metadata)?)?\.sync|wgmma\.mma_async)\b.*\.m(\d+)n(\d+)k(\d+)\.(.*)$/.exec(
      mnemonic,
    );
  if (match === null) return null;
  const [, opcode, m, n, k, rest] = match;
  const types = rest.split('.').filter((word) => /^(?:f\d+|bf16|tf32|e\dm\d|[sub]\d+)$/.test(word));
  const warps = opcode === 'wgmma.mma_async' ? warpgroupWarps : 1;
  return {
    flops: (2 * Number(m) * Number(n) * Number(k)) / warps,
    // D comes before A.
    bits: isUnrated.test(mnemonic) ? null : (operandBits[types[1] ?? ''] ?? null),
  };
}

/** FLOP of all MMAs by the bits of A's elements; the machine has counted those of tcgen05. */
function mmaFlops(
  { byMnemonic }: ExecutionCounts,
  { mmaFlopsByOperandBits }: CtaCounters,
): { readonly rated: Readonly<Record<32 | 16 | 8, number>>; readonly unrated: number } {
  const rated = {
    32: mmaFlopsByOperandBits[32] ?? 0,
    16: mmaFlopsByOperandBits[16] ?? 0,
    8: mmaFlopsByOperandBits[8] ?? 0,
  };
  // FLOP of block-scaled products with two elements to a byte.
  let unrated = mmaFlopsByOperandBits[4] ?? 0;
  for (const [mnemonic, { executions }] of byMnemonic) {
    const mma = mmaOf(mnemonic);
    if (mma === null) continue;
    if (mma.bits === null) unrated += mma.flops * executions;
    else rated[mma.bits] += mma.flops * executions;
  }
  return { rated, unrated };
}

const sum = (amounts: Readonly<Record<string, number>>) =>
  Object.values(amounts).reduce((all, one) => all + one, 0);

/**
 * The work of a run by unit, with the clocks that it takes one SM at full rate if all other units are infinitely fast. Only sums are counted:
 * latencies, waits and bank conflicts take more time, and so do the reads of a wgmma from shared memory, which are not counted.
 */
export function workOfUnits(
  counts: ExecutionCounts,
  counters: CtaCounters,
  architecture: Architecture,
): WorkOfUnits {
  const rates = smRates[architecture];
  const { rated, unrated } = mmaFlops(counts, counters);
  const { fma = 0, mufu = 0 } = counts.laneOperations;
  const shared = sum(counters.sharedBytes);
  const issued = [...counts.byMnemonic.values()].reduce((all, one) => all + one.executions, 0);
  const lines: readonly UnitWork[] = [
    {
      unit: 'tensor core',
      amount: sum(rated),
      measure: 'FLOP',
      clocks: ([32, 16, 8] as const).reduce(
        (all, bits) => all + rated[bits] / rates.mmaFlops[bits],
        0,
      ),
    },
    { unit: 'MUFU', amount: mufu, measure: 'lane operations', clocks: mufu / rates.mufuLanes },
    { unit: 'FMA', amount: fma, measure: 'lane operations', clocks: fma / rates.fmaLanes },
    { unit: 'shared memory', amount: shared, measure: 'bytes', clocks: shared / rates.sharedBytes },
    { unit: 'issue', amount: issued, measure: 'warp instructions', clocks: issued / rates.issues },
  ];
  return { lines: lines.filter(({ amount }) => amount > 0), unratedFlops: unrated };
}
