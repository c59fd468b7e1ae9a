import type { RegisterWidth, Slot } from '../instructions/index.js';

/** Gives registers their places, one after the other. */
export interface SlotAllocator {
  readonly allocate: (width: RegisterWidth) => Slot;
  /** Bytes of all registers so far. */
  readonly bytes: () => number;
}

/** A part of a parameter that is stored or loaded at once. */
export interface ParameterPiece {
  readonly bytes: number;
  readonly slot: Slot;
}

/**
 * A parameter of a function or of a call. It is kept in registers, one for each part that is stored or loaded,
 * since nothing else sees it (PTX ISA, "Parameter State Space": its address cannot be taken).
 */
export interface ParameterPieces {
  /** The pieces, by their offset in bytes. */
  readonly pieces: Map<number, ParameterPiece>;
}

const widths: Readonly<Record<number, RegisterWidth>> = { 1: 16, 2: 16, 4: 32, 8: 64, 16: 128 };

/** The part at an offset, made on first use; null where it overlaps another. */
export function parameterPiece(
  { pieces }: ParameterPieces,
  offset: number,
  bytes: number,
  slots: SlotAllocator,
): ParameterPiece | null {
  const known = pieces.get(offset);
  if (known !== undefined) return known.bytes === bytes ? known : null;
  for (const [start, piece] of pieces)
    if (start < offset + bytes && offset < start + piece.bytes) return null;
  const piece = { bytes, slot: slots.allocate(widths[bytes]) };
  pieces.set(offset, piece);
  return piece;
}

/**
 * The copies that a call makes from one parameter to the other, for the parts that either has. Null where a
 * part of one overlaps parts of the other without matching one of them.
 */
export function handOver(
  from: ParameterPieces,
  to: ParameterPieces,
  slots: SlotAllocator,
): readonly { readonly from: Slot; readonly to: Slot }[] | null {
  const copies: { from: Slot; to: Slot }[] = [];
  // Parts that are stored and never loaded are not copied.
  for (const [offset, { bytes, slot }] of [...to.pieces]) {
    const source = parameterPiece(from, offset, bytes, slots);
    if (source === null) return null;
    copies.push({ from: source.slot, to: slot });
  }
  return copies;
}
