import { describe, expect, it } from 'vitest';
import { binadeBlocks, randomBlocks, sampleBlocks } from '../../src/conform/block-sample.js';
import { fingerprintTargets } from '../../src/conform/targets.js';
import { classify, decode, formats } from '../../src/formats/index.js';
import { conversions, type ConversionName } from '../../src/hardware/index.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const inputsPerBlock = 2 ** 20;
const conversionTargets = fingerprintTargets.filter(({ instruction }) =>
  instruction.startsWith('cvt.'),
);

describe.each(conversionTargets)('the sample of $instruction', ({ instruction, chosenBlocks }) => {
  const { destination, evaluate } = conversions[instruction as ConversionName];
  const format = formats[destination];

  /** What becomes of one fp32 bit pattern: its class, and the binade of a subnormal result. */
  const fate = (bits: number): string => {
    const result = evaluate(bits);
    const value = decode(format, result);
    const subnormal = Math.abs(value) < 2 ** format.minExponent && value !== 0;
    const saturated = Math.abs(value) === format.maxFinite;
    const detail = subnormal ? Math.floor(Math.log2(Math.abs(value))) : saturated;
    return JSON.stringify([classify(format, result), detail]);
  };

  inTurn('has every block in which the conversion changes its ways', () => {
    const chosen = new Set(chosenBlocks());
    for (let block = 0; block < 4096; block++) {
      const first = block * inputsPerBlock;
      const [atFirst, atLast] = [fate(first), fate(first + inputsPerBlock - 1)];
      if (!chosen.has(block)) expect(atLast, `block ${block}`).toBe(atFirst);
    }
  });
});

describe.each(fingerprintTargets)('the blocks chosen for $instruction', ({ chosenBlocks }) => {
  it('are of both signs, each once, in order', () => {
    const chosen = chosenBlocks();
    expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b));
    expect(chosen.every((block) => block >= 0 && block < 4096)).toBe(true);
    expect(chosen.map((block) => (block + 2048) % 4096).sort((a, b) => a - b)).toEqual(chosen);
  });
});

describe('a sample', () => {
  it('is the same for a name and seed, and holds what was chosen', () => {
    const chosen = binadeBlocks([0], [7]);
    const sample = sampleBlocks('name', chosen, 'seed');
    expect(sample).toEqual([...new Set(sample)].sort((a, b) => a - b));
    expect(sample).toHaveLength(chosen.length + 12);
    expect(chosen.every((block) => sample.includes(block))).toBe(true);
    expect(sampleBlocks('name', chosen, 'seed')).toEqual(sample);
    expect(sampleBlocks('name', chosen, 'another')).not.toEqual(sample);
    expect(sampleBlocks('another', chosen, 'seed')).not.toEqual(sample);
  });

  it('draws random blocks uniformly and never those taken', () => {
    const taken = [0, 1, 2, 4095];
    expect(randomBlocks('s', 1e9, taken)).toEqual(Array.from({ length: 4092 }, (_, i) => i + 3));
    const many = Array.from({ length: 400 }, (_, seed) => randomBlocks(`${seed}`, 10, taken));
    const mean = many.flat().reduce((sum, block) => sum + block, 0) / 4000;
    // 4000 uniform draws from 3..4094: the mean's deviation is 4092/√12/√4000 = 18.7.
    expect(Math.abs(mean - 2048.5)).toBeLessThan(6 * 18.7);
  });
});
