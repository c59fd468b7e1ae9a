import type { RegisterFences, Slot } from '../instructions/index.js';

const none = 'with no wgmma.fence before the first product of its warp';
const touched = (what: string) => `with no wgmma.fence since registers of ${what} were accessed`;

/**
 * The accesses to registers of a warp that `wgmma.fence` has ordered: none at first. A product needs a fence after each
 * access of other instructions to the registers of D and A; products of one shape may follow one another in one accumulator
 * without one. Source: PTX ISA, `wgmma.fence`.
 */
export function createRegisterFences(): RegisterFences {
  // Accessed since the last fence, and accumulated in since then, by the shape of the product.
  const accessed = new Set<number>();
  const shapes = new Map<number, string>();
  let hasFence = false;
  return {
    touch: (offsets) => {
      for (const offset of offsets) accessed.add(offset);
    },
    fence: () => {
      accessed.clear();
      shapes.clear();
      hasFence = true;
    },
    multiply: (d, a, shape) => {
      const isAccessed = ({ offset }: Slot) => accessed.has(offset);
      const before = shapes.get(d[0].offset);
      const message = !hasFence
        ? none
        : d.some(isAccessed)
          ? touched('D')
          : a.some(isAccessed)
            ? touched('A')
            : a.some(({ offset }) => shapes.has(offset))
              ? 'with no wgmma.fence since another product accumulated in registers of A'
              : before !== undefined && before !== shape
                ? `with no wgmma.fence since a product of another shape (${before}) accumulated in D`
                : null;
      for (const { offset } of d) shapes.set(offset, shape);
      // A report on one product holds for those after it.
      if (message !== null) accessed.clear();
      return message;
    },
  };
}
