/** Numbers that addresses depend on. */
export interface Sizes {
  readonly blocks: number;
  readonly blockSize: number;
  readonly heads: number;
  readonly columns: number;
  readonly part: number;
  /** Elements of 16 bytes. */
  readonly packed: number;
}

type Address = (sizes: Sizes, slot: number, head: number, column: number) => number;

/** The index of an element, written out by the loops of its array: apart from the library's layouts. */
export const addresses: Readonly<Record<string, Address>> = {
  nhd: ({ heads, columns }, slot, head, column) => (slot * heads + head) * columns + column,
  hnd: ({ blockSize: b, heads, columns }, slot, head, column) => {
    const block = Math.floor(slot / b);
    return ((block * heads + head) * b + (slot - block * b)) * columns + column;
  },
  'joined-nhd': ({ blockSize: b, heads, columns, part }, slot, head, column) => {
    const block = Math.floor(slot / b);
    return (((block * 2 + part) * b + (slot - block * b)) * heads + head) * columns + column;
  },
  'joined-hnd': ({ blockSize: b, heads, columns, part }, slot, head, column) => {
    const block = Math.floor(slot / b);
    return (((block * 2 + part) * heads + head) * b + (slot - block * b)) * columns + column;
  },
  'x-packed': ({ blockSize: b, heads, columns, packed: x }, slot, head, column) => {
    const block = Math.floor(slot / b);
    const outer = Math.floor(column / x);
    return (
      (((block * heads + head) * (columns / x) + outer) * b + (slot - block * b)) * x +
      (column - outer * x)
    );
  },
  transposed: ({ blockSize: b, heads, columns }, slot, head, column) => {
    const block = Math.floor(slot / b);
    return ((block * heads + head) * columns + column) * b + (slot - block * b);
  },
  // cuBLAS: a tile of 128 rows by 4 columns has 512 bytes; row r and column c of it are at (r mod 32)·16 + (r div 32)·4 + c.
  '128x4': ({ heads, columns }, slot, head, column) => {
    const row = slot * heads + head;
    const tile = Math.floor(row / 128) * Math.ceil(columns / 4) + Math.floor(column / 4);
    const r = row % 128;
    return tile * 512 + (r % 32) * 16 + Math.floor(r / 32) * 4 + (column % 4);
  },
  // trtllm-gen's V: with S columns, token t and column s are at row 4·(t div 4) + s div (S/4), column 4·(s mod (S/4)) + t mod 4.
  'tokens-of-4': ({ blockSize: b, heads, columns: s }, slot, head, column) => {
    const block = Math.floor(slot / b);
    const t = slot - block * b;
    const group = s / 4;
    const row = Math.floor(t / 4) * 4 + Math.floor(column / group);
    return (block * heads + head) * b * s + row * s + (column % group) * 4 + (t % 4);
  },
};

/** The number of elements of an array in a layout. */
export function elementsOf(layout: string, sizes: Sizes): number {
  const { blocks, blockSize, heads, columns } = sizes;
  const rows = blocks * blockSize * heads;
  if (layout === '128x4') return Math.ceil(rows / 128) * Math.ceil(columns / 4) * 512;
  return rows * columns * (layout.startsWith('joined') ? 2 : 1);
}
