import { describe, expect, it } from 'vitest';
import { attentionGradients, type Gradient } from '../../../oracles/index.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../../fixtures/gradients-manifest.js';
import { sampled } from '../../setup/effort.js';

/** Root mean square of a kernel's errors over that of the exact values; not a number where one of them is not. */
function relativeError(given: Tensor, { values }: Gradient): number {
  const decoded = decodeTensor(given);
  expect(decoded.length).toBe(values.length);
  let [ofErrors, ofValues] = [0, 0];
  values.forEach((value, i) => {
    ofErrors += (decoded[i] - value) ** 2;
    ofValues += value ** 2;
  });
  return Math.sqrt(ofErrors / ofValues);
}

/** What kernels of a format are within, an order of magnitude above a rounding of the result. */
const sane = { bf16: 2 ** -6, fp32: 1e-5 } as const;
const { files } = readGradientsManifest();
/** With GRADIENTS_TABLE all files are compared, and the errors printed. */
const isTable = process.env['GRADIENTS_TABLE'] !== undefined;

describe('captured gradients are near the exact ones', () => {
  it.each(isTable ? files : sampled(files, 4))('$name', async ({ name, format }) => {
    const { problem, dout, kernels } = await readCapturedGradients(name);
    const exact = attentionGradients(problem, dout, {
      accuracy: { outputFormat: format, ulpFraction: 0, magnitudeFraction: 2 ** -40 },
    });
    for (const [kernel, given] of Object.entries(kernels)) {
      const errors = (['dq', 'dk', 'dv'] as const).map((of) =>
        relativeError(given[of], exact[of]!),
      );
      if (isTable) console.info(name, kernel, ...errors.map((error) => error.toExponential(2)));
      for (const error of errors) {
        expect(error, kernel).toBeLessThan(sane[format]);
        expect(error, kernel).toBeGreaterThan(0);
      }
    }
  });
});
