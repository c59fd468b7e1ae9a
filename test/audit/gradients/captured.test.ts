import { describe, expect } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../../fixtures/gradients-manifest.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const { files } = readGradientsManifest();
/** With GRADIENTS_TABLE every file is audited, and what the audits measure is printed. */
const isTable = process.env['GRADIENTS_TABLE'] !== undefined;

describe('what real kernels gave backwards passes', () => {
  const small = files.filter(({ bytes }) => bytes < 6e5);
  inTurn.each((isTable ? files : sampled(small, 2)).map(({ name }) => name))(
    '%s',
    async (name) => {
      const { problem, dout, kernels } = await readCapturedGradients(name);
      for (const [kernel, { out, lse, ...gradients }] of Object.entries(kernels))
        for (const given of [{}, { out, lse }]) {
          const { verdict, gradients: judged } = auditGradients(problem, {
            dout,
            ...given,
            ...gradients,
          });
          if (isTable) {
            const used = judged.map(({ elements, spread }) =>
              [elements.worstRatio, spread.measured / spread.expected, spread.worstRatio]
                .map((x) => x.toFixed(3))
                .join(' '),
            );
            console.info(
              name,
              kernel,
              'out' in given ? 'own O' : '',
              verdict.pass,
              used.join(' | '),
            );
          }
          expect(verdict.findings, kernel).toEqual([]);
          expect(verdict.pass, kernel).toBe(true);
        }
    },
    600_000,
  );
});
