/**
 * Layouts of caches in words, by the name of who uses them, for `fieldOf`. B is the block size (page size), X the elements of 16
 * bytes, S the factors of a head. Sources: vLLM's reshape_and_cache and reshape_and_cache_flash; FlashInfer's NHD and HND.
 */
export const numberLayouts = {
  /** [tokens, heads, columns]: [blocks, block size, heads, columns] for any block size, as vLLM's flash layout and most others. */
  nhd: 'slot head column',
  /** [blocks, heads, block size, columns]. */
  hnd: 'slot/B head slot%B column',
  /** FlashInfer's joined cache: [pages, 2, page size, heads, columns]. */
  'joined-nhd': 'slot/B part slot%B head column',
  /** [pages, 2, heads, page size, columns]. */
  'joined-hnd': 'slot/B part head slot%B column',
  /** vLLM's joined cache: [2, blocks, block size, heads, columns]. */
  'split-nhd': 'part slot head column',
  /** vLLM's first layout of K: [blocks, heads, columns/x, block size, x]. */
  'x-packed': 'slot/B head column/X slot%B column%X',
  /** vLLM's first layout of V: [blocks, heads, columns, block size]. */
  transposed: 'slot/B head column slot%B',
} as const satisfies Readonly<Record<string, string>>;

/**
 * Layouts of factors in words, of which `column` is the block of columns. The tiles are those of the block scaling factors in the
 * documentation of cuBLAS (1D block scaling): 128 rows by 4 columns, the row of a tile as 4 · 32 and the 32 outside; tiles of 8 rows are
 * FlashInfer's for few rows.
 */
export const factorLayouts = {
  linear: 'slot head column',
  hnd: 'slot/B head slot%B column',
  'joined-nhd': 'slot/B part slot%B head column',
  'joined-hnd': 'slot/B part head slot%B column',
  /** Heads outside, as kernels of attention read factors by token. */
  'heads-first': 'head slot column',
  '128x4': 'row/128 column/4 row%32 row%128/32 column%4',
  '8x4': 'row/8 column/4 row%8 column%4',
  /** The 128×4 tiles of each head of a page. */
  'hnd-128x4': 'slot/B head slot%B/128 column/4 slot%B%32 slot%B%128/32 column%4',
  /** V of trtllm-gen's NVFP4 caches: 4 tokens beside one another, in each head of a page. */
  'tokens-of-4': 'slot/B head slot%B/4 column/G column%G slot%B%4',
} as const satisfies Readonly<Record<string, string>>;

/** The name of a layout of numbers. */
export type NumberLayout = keyof typeof numberLayouts;
/** The name of a layout of factors. */
export type FactorLayout = keyof typeof factorLayouts;
