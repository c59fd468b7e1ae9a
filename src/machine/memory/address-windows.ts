/** State spaces that have a part of the generic address space of their own. */
export type WindowedSpace = 'shared' | 'local' | 'const' | 'param';

/** A state space that an address can be in. */
export type MemorySpace = WindowedSpace | 'global';

/** Bytes of a window: the reach of 32-bit addresses. */
const windowBytes = 2 ** 32;

/** Beginning of the windows, and end of global addresses. */
const firstWindow = 2 ** 47;

/**
 * Beginning of each window in the generic address space. A generic address outside of the windows is a global
 * one. The implementation chooses where the windows lie; kernels learn it from `cvta`. Source: PTX ISA,
 * "Generic Addressing".
 */
export const addressWindows: Readonly<Record<WindowedSpace, number>> = {
  shared: firstWindow,
  local: firstWindow + windowBytes,
  const: firstWindow + 2 * windowBytes,
  param: firstWindow + 3 * windowBytes,
};

const spaces: readonly WindowedSpace[] = ['shared', 'local', 'const', 'param'];

/** An address in its state space. */
export interface SpacedAddress {
  readonly space: MemorySpace;
  readonly address: number;
}

/** The state space that a generic address is in, and the address there. */
export function addressSpaceOf(generic: number): SpacedAddress {
  const window = Math.floor((generic - firstWindow) / windowBytes);
  const space = spaces[window];
  return space === undefined
    ? { space: 'global', address: generic }
    : { space, address: generic - addressWindows[space] };
}

/** The generic address of an address of a state space: the result of `cvta`. */
export function genericAddress(space: MemorySpace, address: number): number {
  return space === 'global' ? address : addressWindows[space] + address;
}

/** Whether a generic address is in a state space: the result of `isspacep`. */
export function isInSpace(space: MemorySpace, generic: number): boolean {
  return addressSpaceOf(generic).space === space;
}
