import { describe, expect } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../../fixtures/gradients-manifest.js';
import { sampled } from '../../setup/effort.js';
import { capturedCase, gradientDamages } from './damaged-gradients.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const { files } = readGradientsManifest();
/** With GRADIENTS_TABLE every damage of one kernel of every file is audited, and the findings printed. */
const isTable = process.env['GRADIENTS_TABLE'] !== undefined;
/**
 * What a correct kernel may be off by as much: 4 ulp of fp32 are as much as the largest errors of these kernels (docs/guide/auditing.md).
 */
const withinRounding: readonly (readonly [file: string, damage: RegExp])[] = [
  ['plain-fp32.safetensors', /4 ulp/],
];
/** Whether a damage of a file is more than rounding, and of what it has. */
const isVisible = (name: string, features: readonly string[], damage: string) =>
  (damage !== 'one head of a group' || features.includes('grouped heads')) &&
  !withinRounding.some(([file, damages]) => file === name && damages.test(damage));
const cases = files.flatMap(({ name, bytes, outputs, features }) =>
  bytes < 6e5 || isTable
    ? sampled(outputs, 1).flatMap((kernel) =>
        Object.keys(gradientDamages)
          .filter((damage) => isVisible(name, features, damage))
          .map((damage) => ({ name, kernel, damage })),
      )
    : [],
);

describe('damaged gradients of real kernels fail', () => {
  inTurn.each(isTable ? cases : sampled(cases, 5))('$name $kernel, $damage', async (one) => {
    const { name, kernel, damage } = one;
    const from = capturedCase(await readCapturedGradients(name), kernel);
    const damaged = gradientDamages[damage](from);
    expect(damaged).not.toBeNull();
    const { out, lse, ...gradients } = damaged!;
    const { verdict } = auditGradients(
      from.problem,
      { dout: from.dout, out, lse, ...gradients },
      { diagnose: false },
    );
    if (isTable)
      console.info(
        `@ ${damage} | ${name} ${kernel} | ${verdict.pass ? 'PASS' : verdict.findings.map(({ test }) => test).join(' ')}`,
      );
    expect(verdict.pass).toBe(false);
  });
});
