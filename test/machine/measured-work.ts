import {
  type Amounts,
  type CtaCounters,
  type Roofline,
  sumOfCounters,
} from '../../src/machine/index.js';

/**
 * The work of a longer run beyond a shorter one; amounts that are equal are left out. For runs that
 * differ in one block this is the block's work alone, without the beginning and the end. The most in
 * use at a time is the longer run's.
 */
export function differenceOfCounters(longer: CtaCounters, shorter: CtaCounters): CtaCounters {
  const negative = Object.entries(shorter).map(([key, amounts]) => [
    key,
    typeof amounts === 'number'
      ? 0
      : Object.fromEntries(Object.entries(amounts as Amounts).map(([name, n]) => [name, -n])),
  ]);
  return sumOfCounters([longer, Object.fromEntries(negative) as CtaCounters]);
}

/** The bytes of shared memory that MMAs read as operands, in clocks: the paper's count. */
export function operandClocks({ lines }: Roofline): number {
  const shared = lines.find(({ unit }) => unit === 'shared memory');
  return (shared?.parts ?? [])
    .filter(({ name }) => name.endsWith('→ mma'))
    .reduce((sum, { clocks }) => sum + clocks, 0);
}
