import type { BlockScaledKind } from '../../hardware/index.js';

/**
 * Number of elements along K that share a scale factor, by the modifier after `.block_scale`, of tcgen05.mma and of mma.sync. Source: PTX
 * ISA, "Block Scaling", tables 36, 54 and 55, and the defaults of `.scale_vectorsize`.
 */
const blocks: Readonly<Record<BlockScaledKind, Readonly<Record<string, 16 | 32>>>> = {
  mxf8f6f4: { '': 32, 'scale_vec::1X': 32, block32: 32 },
  mxf4: { '': 32, 'scale_vec::2X': 32, block32: 32 },
  mxf4nvf4: { 'scale_vec::2X': 32, block32: 32, 'scale_vec::4X': 16, block16: 16 },
};

/** Whether a word after `kind::` names a kind with scale factors. */
export function isBlockScaledKind(name: string): name is BlockScaledKind {
  return name in blocks;
}

/** Number of elements that share a factor by an instruction's modifiers, or the missing feature. */
export function blockOf(kind: BlockScaledKind, modifiers: readonly string[]): 16 | 32 | string {
  const size = modifiers.find((one) => /^(scale_vec::|block\d)/.test(one)) ?? '';
  return blocks[kind][size] ?? `blocks of kind::${kind} by ${size === '' ? 'default' : `.${size}`}`;
}
