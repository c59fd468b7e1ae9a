import { warpLanes } from '../../../machine/index.js';
import type { Slot } from '../slot.js';
import type { WarpRegisters } from '../warp-registers.js';

/** The layout of a matrix of an `mma` in registers. */
export interface FragmentLayout {
  /** Number of registers of each lane. */
  readonly registers: number;
  /** Bits of an element; a register of 64 bits has one element, others have 32 bits. */
  readonly elementBits: 1 | 4 | 8 | 16 | 32 | 64;
  /** The place of each element in the matrix, [register][lane][element]. */
  readonly places: Int32Array;
}

/** Index of the matrix element that a lane has in a register. */
type Place = (register: number, lane: number, element: number) => number;

function layout(
  registers: number,
  elementBits: FragmentLayout['elementBits'],
  place: Place,
): FragmentLayout {
  const elements = elementsOf(elementBits);
  const places = Int32Array.from({ length: registers * warpLanes * elements }, (_, i) =>
    place(
      Math.floor(i / (warpLanes * elements)),
      Math.floor(i / elements) % warpLanes,
      i % elements,
    ),
  );
  return { registers, elementBits, places };
}

/** Number of elements of a register. */
function elementsOf(elementBits: FragmentLayout['elementBits']): number {
  return elementBits === 64 ? 1 : 32 / elementBits;
}

/**
 * A, [m][k]: lane l has elements of row ⌊l / 4⌋ and, where there are 16 rows, in every other register of
 * the row 8 below; a register has neighbours in k, and four lanes have the whole of a block. Source: PTX ISA, "Matrix
 * Fragments for mma", the same in all shapes.
 */
export function layoutOfA(
  m: 8 | 16,
  k: number,
  elementBits: FragmentLayout['elementBits'],
): FragmentLayout {
  const elements = elementsOf(elementBits);
  const halves = m / 8;
  return layout((k / (4 * elements)) * halves, elementBits, (register, lane, element) => {
    const row = (lane >> 2) + 8 * (register % halves);
    return row * k + columnOf(Math.floor(register / halves), lane, element, elements);
  });
}

/** The index along k of an element in a block of four lanes. */
function columnOf(block: number, lane: number, element: number, elements: number): number {
  return (4 * block + (lane & 3)) * elements + element;
}

/** B as [n][k], with n = 8: lane l has elements of column ⌊l / 4⌋, otherwise like A. */
export function layoutOfB(k: number, elementBits: FragmentLayout['elementBits']): FragmentLayout {
  return layoutOfA(8, k, elementBits);
}

/** C and D, [m][8]: lane l has two neighbours of row ⌊l / 4⌋, and two of the row 8 below. */
export function layoutOfC(m: 8 | 16, elementBits: 16 | 32 | 64): FragmentLayout {
  const elements = elementsOf(elementBits);
  return layout(m / 4 / elements, elementBits, (register, lane, element) => {
    const index = register * elements + element;
    return ((lane >> 2) + 8 * (index >> 1)) * 8 + 2 * (lane & 3) + (index & 1);
  });
}

/** The value of an immediate in every lane, in the place of a register of 32 bits. */
export interface ImmediateWord {
  readonly words: Uint32Array;
}

/** An immediate of 32 bits. */
export function immediateWord(bits: number): ImmediateWord {
  return { words: new Uint32Array(warpLanes).fill(bits) };
}

/** A source of a matrix: a register, or an immediate. */
export type FragmentSource = Slot | ImmediateWord;

function wordsOf(registers: WarpRegisters, source: FragmentSource): Uint32Array {
  return 'words' in source ? source.words : registers.words(source);
}

/** Bit patterns of a matrix: for elements of up to 32 bits. */
export type MatrixPatterns = Uint8Array | Uint16Array | Uint32Array;

/** Copies registers of all lanes into a matrix. */
export function gather(
  registers: WarpRegisters,
  sources: readonly FragmentSource[],
  { elementBits, places }: FragmentLayout,
  matrix: MatrixPatterns,
): void {
  const elements = 32 / elementBits;
  const mask = elementBits === 32 ? 0xffffffff : 2 ** elementBits - 1;
  let at = 0;
  for (const source of sources) {
    const words = wordsOf(registers, source);
    for (let lane = 0; lane < warpLanes; lane++) {
      const word = words[lane];
      for (let i = 0; i < elements; i++) matrix[places[at++]] = (word >>> (i * elementBits)) & mask;
    }
  }
}

/** `gather` for the tags of elements of 4 bits, from registers with tags of bytes: both elements of a byte have its tag. */
export function gatherPairs(
  registers: WarpRegisters,
  sources: readonly FragmentSource[],
  { places }: FragmentLayout,
  matrix: MatrixPatterns,
): void {
  let at = 0;
  for (const source of sources)
    for (const word of wordsOf(registers, source).subarray(0, warpLanes))
      for (let i = 0; i < 8; i++) matrix[places[at++]] = (word >>> (8 * (i >> 1))) & 0xff;
}

/** Copies registers of all lanes into the matrix for which it was made. */
export type Gather = (registers: WarpRegisters, sources: readonly FragmentSource[]) => void;

/**
 * `gather` for one matrix. Where the elements of a register are neighbours in a row, with the same bits in the
 * matrix, it copies whole registers.
 */
export function createGather(layout: FragmentLayout, matrix: MatrixPatterns): Gather {
  const { elementBits, places } = layout;
  const elements = elementsOf(elementBits);
  const isWord = (place: number, i: number) => {
    const first = places[i - (i % elements)];
    return first % elements === 0 && place === first + (i % elements);
  };
  if (8 * matrix.BYTES_PER_ELEMENT !== elementBits || !places.every(isWord))
    return (registers, sources) => gather(registers, sources, layout, matrix);
  const words = new Uint32Array(matrix.buffer, matrix.byteOffset, matrix.length / elements);
  const wordPlaces = places.filter((_, i) => i % elements === 0).map((place) => place / elements);
  return (registers, sources) => {
    let at = 0;
    for (const source of sources) {
      const lanes = wordsOf(registers, source);
      for (let lane = 0; lane < warpLanes; lane++) words[wordPlaces[at++]] = lanes[lane];
    }
  };
}

/** Copies a matrix into registers of all lanes; null is for registers that nobody keeps. */
export function scatter(
  registers: WarpRegisters,
  slots: readonly (Slot | null)[],
  { elementBits, places }: FragmentLayout,
  matrix: MatrixPatterns,
): void {
  const elements = 32 / elementBits;
  let at = 0;
  for (const slot of slots) {
    if (slot === null) {
      at += warpLanes * elements;
      continue;
    }
    const words = registers.words(slot);
    for (let lane = 0; lane < warpLanes; lane++) {
      let word = 0;
      for (let i = 0; i < elements; i++) word |= matrix[places[at++]] << (i * elementBits);
      words[lane] = word;
    }
  }
}

/** `gather` for fp64 numbers in registers of 64 bits. */
export function gatherFloat64(
  registers: WarpRegisters,
  sources: readonly FragmentSource[],
  { places }: FragmentLayout,
  matrix: Float64Array,
): void {
  const pairs = new Uint32Array(matrix.buffer, matrix.byteOffset, 2 * matrix.length);
  let at = 0;
  for (const source of sources) {
    const words = wordsOf(registers, source);
    for (let lane = 0; lane < warpLanes; lane++) {
      const place = 2 * places[at++];
      pairs[place] = words[2 * lane];
      pairs[place + 1] = words[2 * lane + 1];
    }
  }
}

/** `gatherFloat64` in the other direction. */
export function scatterFloat64(
  registers: WarpRegisters,
  slots: readonly (Slot | null)[],
  { places }: FragmentLayout,
  matrix: Float64Array,
): void {
  const pairs = new Uint32Array(matrix.buffer, matrix.byteOffset, 2 * matrix.length);
  let at = 0;
  for (const slot of slots) {
    if (slot === null) {
      at += warpLanes;
      continue;
    }
    const words = registers.words(slot);
    for (let lane = 0; lane < warpLanes; lane++) {
      const place = 2 * places[at++];
      words[2 * lane] = pairs[place];
      words[2 * lane + 1] = pairs[place + 1];
    }
  }
}
