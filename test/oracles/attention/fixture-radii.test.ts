import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { attentionOracle, levels } from '../../../oracles/index.js';
import { openTensorFile, readProblem } from '../../../src/io/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = new URL('../../../fixtures/attention/', import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));

describe('problems of real captures at the accuracy of an audit', () => {
  it('are thirteen', () => expect(names).toHaveLength(13));

  inTurn.each(names)('%s: every radius is at most 2^-40 of Σ p|v|', async (name) => {
    const file = await openTensorFile(fileURLToPath(new URL(name, folder)));
    const problem = await readProblem(file);
    await file.close();
    const accuracy = {
      outputFormat: problem.q.format,
      ulpFraction: 0,
      magnitudeFraction: 2 ** -40,
    };
    const {
      level,
      quantities: {
        out: { radius: outRadius, magnitude },
        lse: { radius: lseRadius },
      },
    } = attentionOracle(problem, { accuracy });
    outRadius.forEach((radius, i) => {
      if (!(radius <= 2 ** -40 * magnitude[i])) throw new Error(`element ${i}: ${radius}`);
    });
    expect(Math.max(...lseRadius)).toBeLessThan(2 ** -40);
    // No captured problem needs a slower level.
    expect(new Set(Array.from(level, (index) => levels[index]))).toEqual(new Set(['fp64']));
  });
});
