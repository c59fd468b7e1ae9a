import type { Fragment, Instruction } from '../../machine/index.js';
import {
  gatherFragment,
  scatterFragment,
  type Slot,
  type WarpRegisters,
} from '../instructions/index.js';

/** Registers that the machine uses after the instruction that named them has been issued. */
interface Loan {
  readonly key: string;
  readonly slots: readonly Slot[];
  readonly offsets: ReadonlySet<number>;
  readonly fragment: Fragment;
}

/** The registers of a warp that are on loan to the machine. */
export interface Loans {
  /** The fragment of these registers: that of a loan of the same list, or a new one with their values. */
  readonly lend: (slots: readonly Slot[]) => Fragment;
  /**
   * Takes back the loans of registers before an instruction touches them. The machine waits for the operation that
   * fills them, or reports that nothing has waited for it.
   *
   * @param lends lists of registers that the instruction lends itself: a loan of the same list stays
   */
  readonly takeBack: (
    touches: (offset: number) => boolean,
    site: string,
    lends?: readonly (readonly Slot[])[],
  ) => Generator<Instruction, void, void>;
  readonly isEmpty: () => boolean;
  /** Whether a register is on loan, by the offset of its slot. */
  readonly isLent: (offset: number) => boolean;
}

function keyOf(slots: readonly Slot[]): string {
  return slots.map(({ offset }) => offset).join(' ');
}

/** The loans of a warp; none at first. */
export function createLoans(registers: WarpRegisters): Loans {
  let loans: readonly Loan[] = [];
  return {
    isEmpty: () => loans.length === 0,
    isLent: (offset) => loans.some(({ offsets }) => offsets.has(offset)),
    lend: (slots) => {
      const key = keyOf(slots);
      const known = loans.find((loan) => loan.key === key);
      if (known !== undefined) return known.fragment;
      const fragment = gatherFragment(registers, slots);
      const offsets = new Set(slots.map(({ offset }) => offset));
      loans = [...loans, { key, slots, offsets, fragment }];
      return fragment;
    },
    takeBack: function* (touches, site, lends = []) {
      const lent = lends.map((slots) => ({ key: keyOf(slots), slots }));
      const isTouched = ({ key, offsets }: Loan): boolean => {
        for (const offset of offsets) if (touches(offset)) return true;
        return lent.some(
          (one) => one.key !== key && one.slots.some(({ offset }) => offsets.has(offset)),
        );
      };
      const ended = loans.filter(isTouched);
      if (ended.length === 0) return;
      const reads = ended.map(({ fragment }) => fragment);
      yield { op: 'registers', reads, execute: () => ({}), site };
      for (const { slots, fragment } of ended) scatterFragment(registers, slots, fragment, -1);
      loans = loans.filter((loan) => !ended.includes(loan));
    },
  };
}
