import { formats, round } from '../../src/formats/index.js';

/** Elements that share a factor in NVFP4. */
export const microBlock = 16;
const largestElement = formats.e2m1.maxFinite;

/** Numbers of e2m1 and the factors of e4m3 of their blocks. */
export interface MicroBlocks {
  readonly elements: Float64Array;
  /** One for each block, in the order of the blocks. */
  readonly factors: Float64Array;
}

/**
 * NVFP4 of numbers whose blocks of 16 lie one behind the other, the last of a line shorter: the factor is max|x| / 6 rounded to
 * e4m3 (saturating), an element x / factor rounded to e2m1, 0 where the factor is. As the paper of SageAttention 3 has NVFP4; no kernel
 * was compared. Divisions are taken as rounded once to fp32.
 * @param line elements of a line of blocks
 */
export function quantiseMicroBlocks(values: Float64Array, line: number): MicroBlocks {
  const perLine = Math.ceil(line / microBlock);
  const lines = line === 0 ? 0 : values.length / line;
  const elements = new Float64Array(values.length);
  const factors = new Float64Array(lines * perLine);
  for (let row = 0; row < lines; row++)
    for (let block = 0; block < perLine; block++) {
      const first = row * line + block * microBlock;
      const end = Math.min(first + microBlock, (row + 1) * line);
      let largest = 0;
      for (let at = first; at < end; at++) largest = Math.max(largest, Math.abs(values[at]));
      const factor = round(formats.e4m3, Math.fround(largest / largestElement), {
        overflow: 'saturate',
      });
      factors[row * perLine + block] = factor;
      if (factor === 0) continue;
      for (let at = first; at < end; at++)
        elements[at] = round(formats.e2m1, Math.fround(values[at] / factor));
    }
  return { elements, factors };
}
